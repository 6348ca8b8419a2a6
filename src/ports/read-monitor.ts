import type { Duplex } from 'node:stream';
import { forwardPort } from '../kube/streams/port-forward.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import { MONITOR_PORT } from '../resources/pod/monitor.ts';

/** Bytes of a report: an hour of eight GPUs has 150 KB. A tenant may have put another program on the port. */
const MAX_REPORT = 2 * 1024 * 1024;

/** The report of the exporter in a pod, as it is: it comes from the tenant's container. */
export type ReadMonitor = (pod: { namespace: string; pod: string }, signal: AbortSignal) => Promise<string>;

async function readAll(stream: Duplex): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_REPORT) throw new Error('The report of the exporter is too long.');
    chunks.push(chunk);
  }
  if (stream.errored) throw stream.errored;
  return Buffer.concat(chunks).toString();
}

/** Reads reports through the API server and the kubelet, from the loopback of the pod: no neighbour reaches it. */
export function monitorReader(endpoint: StreamEndpoint): ReadMonitor {
  return async ({ namespace, pod }, signal) => {
    const stream = await forwardPort(endpoint, { namespace, pod, port: MONITOR_PORT }, signal);
    const cut = (): void => void stream.destroy(new Error('The exporter did not answer in time.'));
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    try {
      // The stream cannot carry the end of one direction: in HTTP/1.0 the exporter ends the connection.
      stream.write('GET / HTTP/1.0\r\n\r\n');
      const answer = await readAll(stream);
      const [, body] = /^HTTP\/1\.\d 200 [^]*?\r\n\r\n([^]*)$/.exec(answer) ?? [];
      if (body === undefined) throw new Error('The exporter does not answer as one.');
      return body;
    } finally {
      signal.removeEventListener('abort', cut);
      stream.destroy();
    }
  };
}
