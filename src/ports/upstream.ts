import { request as httpRequest, type ClientRequest, type OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Lru } from '../lib/lru.ts';
import { forwardPort } from '../kube/streams/port-forward.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import { JUPYTER_TOKEN_PORT } from '../resources/pod/jupyter.ts';
import { PortError } from './errors.ts';
import type { PortTarget } from './target.ts';

/** What one request to a port is. */
export interface Call {
  method: string;
  /** Path and query as the pod gets them. */
  path: string;
  headers: OutgoingHttpHeaders;
}

export interface Upstream {
  /** Begins a request on a connection of its own, through the API server and the kubelet; ends with the signal. */
  begin(target: PortTarget, call: Call, signal: AbortSignal): Promise<{ request: ClientRequest; stream: Duplex }>;
}

const MAX_TOKEN = 4096;
const TOKEN_TIMEOUT_MS = 5_000;
const KNOWN_TOKENS = 10_000;

function unreachable(port: number, error: unknown): PortError {
  const reason = error instanceof Error ? error.message : 'unknown';
  return new PortError('port_unreachable', `Port ${port} of the instance does not answer: ${reason.slice(0, 300)}`, {
    cause: error,
  });
}

export function createUpstream(endpoint: StreamEndpoint): Upstream {
  /** By the uid of the pod; what is known stays true as long as the pod lives. */
  const tokens = new Lru<string, string>(KNOWN_TOKENS);

  /** Jupyter's token, which the instance tells on its loopback; undefined while it has none. */
  async function tokenOf(target: PortTarget): Promise<string | undefined> {
    const known = tokens.get(target.podUid);
    if (known !== undefined) return known;
    const signal = AbortSignal.timeout(TOKEN_TIMEOUT_MS);
    try {
      const stream = await forwardPort(endpoint, { ...target, port: JUPYTER_TOKEN_PORT }, signal);
      signal.addEventListener('abort', () => stream.destroy());
      let length = 0;
      stream.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > MAX_TOKEN) stream.destroy();
      });
      stream.write('GET /token HTTP/1.0\r\n\r\n');
      const [, token] = /^HTTP\/1\.\d 200 [^]*?\r\n\r\n([!-~]+)\s*$/.exec(await text(stream)) ?? [];
      if (token === undefined) return undefined;
      tokens.set(target.podUid, token);
      return token;
    } catch {
      return undefined;
    }
  }

  return {
    begin: async (target, call, signal) => {
      const token = target.jupyter ? await tokenOf(target) : undefined;
      const headers = token === undefined ? call.headers : { ...call.headers, authorization: `token ${token}` };
      const stream = await forwardPort(endpoint, target, signal).catch((error: unknown) => {
        throw unreachable(target.port, error);
      });
      const cut = (): void => void stream.destroy();
      if (signal.aborted) cut();
      signal.addEventListener('abort', cut, { once: true });
      stream.once('close', () => signal.removeEventListener('abort', cut));
      const { method, path } = call;
      const request = httpRequest({ createConnection: () => stream, method, path, headers, setHost: false });
      return { request, stream };
    },
  };
}

/** The answer's error in words: a refused port says so on the stream, before or after the request was begun. */
export function failureOf(port: number, stream: Duplex, error: unknown): PortError {
  return unreachable(port, stream.errored ?? error);
}
