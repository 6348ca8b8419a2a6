import type { Duplex } from 'node:stream';
import { forwardPort } from '../kube/streams/port-forward.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import { MONITOR_PORT } from '../resources/pod/monitor.ts';

/** Bytes of a report: an hour of 64 slices of GPUs has 900 KB. A tenant may have put another program on the port. */
const MAX_REPORT = 1024 * 1024;

/** The report of the exporter in a pod, as it is: it comes from the tenant's container. */
export type ReadMonitor = (pod: { namespace: string; pod: string }, signal: AbortSignal) => Promise<string>;

/** Bytes in which the end of the head is looked for. */
const MAX_HEAD = 1024;
const HEAD_END = '\r\n\r\n';

/** How many bytes an answer has in all, as its head says; undefined while it does not. */
function lengthOf(start: Buffer): number | undefined {
  const end = start.indexOf(HEAD_END);
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(start.toString('latin1', 0, Math.max(0, end))) ?? [];
  return length === undefined ? undefined : end + HEAD_END.length + Number(length);
}

// To its length, where it tells one: the kubelet ends a connection a second after the pod did.
async function readAnswer(stream: Duplex): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  let wanted: number | undefined;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_REPORT) throw new Error('The report of the exporter is too long.');
    // A tenant may send it byte by byte: only the first bytes are put together again and again.
    if (wanted === undefined && length - chunk.length < MAX_HEAD) wanted = lengthOf(Buffer.concat(chunks));
    if (length >= (wanted ?? Infinity)) break;
  }
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
      const answer = await readAnswer(stream);
      const [, body] = /^HTTP\/1\.\d 200 [^]*?\r\n\r\n([^]*)/.exec(answer) ?? [];
      if (body === undefined) throw new Error('The exporter does not answer as one.');
      return body;
    } finally {
      signal.removeEventListener('abort', cut);
      stream.destroy();
    }
  };
}
