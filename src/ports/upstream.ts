import type { ClientRequest, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Lru } from '../lib/lru.ts';
import { request as httpRequest } from '../lib/node-http.ts';
import { forwardPort } from '../kube/streams/port-forward.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import { JUPYTER_TOKEN_PORT } from '../resources/pod/jupyter.ts';
import { PortError } from './errors.ts';
import type { PortTarget } from './target.ts';

export interface PodRequest {
  method: string;
  /** Path and query. */
  path: string;
  headers: OutgoingHttpHeaders;
}

const MAX_TOKEN = 4096;
const TOKEN_TIMEOUT_MS = 5_000;
const KNOWN_TOKENS = 10_000;

/** The error of a port that does not answer. A refused port says so on the stream, not in `error`. */
export function unreachable(port: number, error: unknown, stream?: Duplex): PortError {
  const cause = stream?.errored ?? error;
  const reason = cause instanceof Error ? cause.message : 'unknown';
  const message = `Port ${port} of the instance does not answer: ${reason.slice(0, 300)}`;
  return new PortError('port_unreachable', message, { cause });
}

/** Sends requests to pods, through the API server and the kubelet. */
export class Upstream {
  readonly #endpoint: StreamEndpoint;
  /** Jupyter's tokens by the uid of the pod. A token lives as long as its pod. */
  readonly #tokens = new Lru<string, string>(KNOWN_TOKENS);

  constructor(endpoint: StreamEndpoint) {
    this.#endpoint = endpoint;
  }

  /** Begins a request on a connection of its own, which ends with the signal. Rejects with {@link PortError}. */
  async begin(
    target: PortTarget,
    { method, path, headers: sent }: PodRequest,
    signal: AbortSignal,
  ): Promise<{ request: ClientRequest; stream: Duplex }> {
    const token = target.jupyter ? await this.#jupyterToken(target) : undefined;
    const headers = token === undefined ? sent : { ...sent, authorization: `token ${token}` };
    const stream = await forwardPort(this.#endpoint, target, signal).catch((error: unknown) => {
      throw unreachable(target.port, error);
    });
    const cut = (): void => void stream.destroy();
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    stream.once('close', () => signal.removeEventListener('abort', cut));
    const request = httpRequest({ createConnection: () => stream, method, path, headers, setHost: false });
    return { request, stream };
  }

  /** Jupyter's token, which the instance serves on its loopback; undefined while there is none. */
  async #jupyterToken(target: PortTarget): Promise<string | undefined> {
    const known = this.#tokens.get(target.podUid);
    if (known !== undefined) return known;
    const signal = AbortSignal.timeout(TOKEN_TIMEOUT_MS);
    try {
      const stream = await forwardPort(this.#endpoint, { ...target, port: JUPYTER_TOKEN_PORT }, signal);
      signal.addEventListener('abort', () => stream.destroy());
      let length = 0;
      stream.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > MAX_TOKEN) stream.destroy();
      });
      stream.write('GET /token HTTP/1.0\r\n\r\n');
      const [, token] = /^HTTP\/1\.\d 200 [^]*?\r\n\r\n([!-~]+)\s*$/.exec(await text(stream)) ?? [];
      if (token === undefined) return undefined;
      this.#tokens.set(target.podUid, token);
      return token;
    } catch {
      return undefined;
    }
  }
}
