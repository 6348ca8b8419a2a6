import { WebSocket, type ClientOptions, type RawData } from 'ws';
import { isObject } from '../../lib/json.ts';
import type { KubeEndpoint, TlsOptions } from '../config/connection.ts';

/** Where the API server is, as a WebSocket client needs it. */
export type StreamEndpoint = Pick<KubeEndpoint, 'server' | 'headers'> & { tls: Partial<TlsOptions> };

/** The API server or the kubelet refused the stream or could not be reached. The message is in their words. */
export class StreamRefusedError extends Error {
  override name = 'StreamRefusedError';
  /** HTTP status of the refusal; 0 when no answer came. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export interface ChannelSocketEvents {
  /** One frame: the bytes after the channel byte. No other frame reuses their memory. */
  data(channel: number, bytes: Buffer): void;
  /** The socket is gone, cleanly or not. Called exactly once, after the last `data`. */
  closed(reason: string): void;
}

const HANDSHAKE_TIMEOUT_MS = 15_000;
const PING_INTERVAL_MS = 20_000;
const CLOSE_GRACE_MS = 2_000;
// client-go's port-forward and exec write at most 32 KiB per frame; the API server's reader accepts far more.
const MAX_FRAME = 16 * 1024 * 1024;
const MAX_REFUSAL_BODY = 8 * 1024;

function clientOptions(endpoint: StreamEndpoint, headers: Record<string, string>): ClientOptions {
  return {
    ...endpoint.tls,
    headers,
    perMessageDeflate: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxPayload: MAX_FRAME,
    skipUTF8Validation: true,
    // A zero key leaves the payload as it is (RFC 6455 section 5.3 allows any key). Masking protects plain-text
    // intermediaries from scripts in browsers. Berth is neither, and masking costs a pass over every byte.
    generateMask: (mask) => mask.fill(0),
  };
}

function statusMessage(body: string, fallback: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    if (isObject(parsed) && typeof parsed['message'] === 'string') return parsed['message'];
  } catch {
    // Not a Status: a proxy's page or plain text.
  }
  const line = body.trim().split('\n', 1)[0] ?? '';
  return line === '' ? fallback : line.slice(0, 512);
}

function connectOnce(
  endpoint: StreamEndpoint,
  url: string,
  protocols: string[],
  context: { headers: Record<string, string>; signal: AbortSignal | undefined; events: ChannelSocketEvents },
): Promise<ChannelSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, protocols, clientOptions(endpoint, context.headers));
    const abort = (): void => socket.terminate();
    const fail = (error: StreamRefusedError): void => {
      context.signal?.removeEventListener('abort', abort);
      socket.terminate();
      reject(error);
    };
    socket.on('error', (error) =>
      fail(new StreamRefusedError(`The API server cannot be reached: ${error.message}`, 0)),
    );
    socket.once('unexpected-response', (_request, response) => {
      const status = response.statusCode ?? 0;
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        if (body.length < MAX_REFUSAL_BODY) body += text;
      });
      response.once('close', () => fail(new StreamRefusedError(statusMessage(body, `HTTP ${status}`), status)));
    });
    socket.once('open', () => {
      context.signal?.removeEventListener('abort', abort);
      // The first frames may have come in the same read as the handshake. The caller has the socket before they do.
      socket.pause();
      setImmediate(() => socket.resume());
      resolve(new ChannelSocket(socket, context.events));
    });
    context.signal?.addEventListener('abort', abort, { once: true });
    if (context.signal?.aborted === true) abort();
  });
}

/** A WebSocket whose frames begin with a channel number, as exec and port-forward use it. */
export class ChannelSocket {
  readonly #socket: WebSocket;
  #reason = 'The connection to the API server was lost.';
  #isAlive = true;

  constructor(socket: WebSocket, events: ChannelSocketEvents) {
    this.#socket = socket;
    socket.on('message', (data: RawData) => {
      const frame = data as Buffer;
      const channel = frame[0];
      if (channel !== undefined) events.data(channel, frame.subarray(1));
    });
    socket.on('pong', () => {
      this.#isAlive = true;
    });
    socket.on('error', (error) => {
      this.#reason = `The connection to the API server was lost: ${error.message}`;
    });
    const pings = setInterval(() => this.#ping(), PING_INTERVAL_MS);
    socket.once('close', (code, text) => {
      clearInterval(pings);
      events.closed(text.length > 0 ? `${text.toString()} (${code})` : this.#reason);
    });
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  /** Sends one frame. Calls back when the kernel took it, with an error when the socket died first. */
  send(channel: number, parts: readonly Uint8Array[], done: (error?: Error) => void): void {
    if (this.#socket.readyState !== WebSocket.OPEN) {
      done(new Error('The stream is closed.'));
      return;
    }
    const frame = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, 1));
    frame[0] = channel;
    let offset = 1;
    for (const part of parts) {
      frame.set(part, offset);
      offset += part.length;
    }
    this.#socket.send(frame, (error) => done(error ?? undefined));
  }

  pause(): void {
    if (!this.#socket.isPaused && this.#socket.readyState === WebSocket.OPEN) this.#socket.pause();
  }

  resume(): void {
    if (!this.#socket.isPaused) return;
    this.#isAlive = true;
    this.#socket.resume();
  }

  close(): void {
    const socket = this.#socket;
    if (socket.readyState === WebSocket.CLOSED) return;
    if (socket.isPaused) socket.resume();
    socket.close(1000);
    const timer = setTimeout(() => socket.terminate(), CLOSE_GRACE_MS);
    socket.once('close', () => clearTimeout(timer));
  }

  // A peer that vanished without a FIN leaves two pings unanswered. While reading is paused its pongs wait behind data,
  // so a paused socket is not judged.
  #ping(): void {
    if (this.#socket.isPaused) return;
    if (!this.#isAlive) {
      this.#reason = 'The API server stopped answering.';
      this.#socket.terminate();
      return;
    }
    this.#isAlive = false;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }
}

/** Opens `path` (with its query). After a 401 it tries once with fresh credentials. Rejects with StreamRefusedError. */
export async function openChannelSocket(
  endpoint: StreamEndpoint,
  path: string,
  protocols: string[],
  options: { events: ChannelSocketEvents; signal?: AbortSignal | undefined },
): Promise<ChannelSocket> {
  const url = `${endpoint.server.replace(/^http/, 'ws')}${path}`;
  const context = { signal: options.signal, events: options.events };
  try {
    return await connectOnce(endpoint, url, protocols, { ...context, headers: await endpoint.headers() });
  } catch (error) {
    if (!(error instanceof StreamRefusedError) || error.status !== 401) throw error;
    const headers = await endpoint.headers({ refresh: true });
    return await connectOnce(endpoint, url, protocols, { ...context, headers });
  }
}
