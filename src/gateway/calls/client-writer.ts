import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { errorBody, streamError, type ClientError, type Dialect } from '../dialects/index.ts';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // `no-transform`: a proxy that compresses would hold events back.
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

const TEXT_MAX = 16 * 1024;
/** Between comments on a stream without a first byte. */
const KEEP_ALIVE_MS = 10_000;
/** A client that reads nothing for this long is taken as gone. */
const STALL_MS = 300_000;

export interface Flow {
  pause(): void;
  resume(): void;
}

/** The client's side of one call: sends headers once, bytes under back-pressure and errors in the dialect's shape. */
export class ClientWriter {
  readonly #response: ServerResponse;
  readonly #dialect: Dialect;
  readonly #requestId: string;
  #route = '';
  #keepAlive: NodeJS.Timeout | undefined;
  #stall: NodeJS.Timeout | undefined;
  #onGone: (() => void) | undefined;
  #draining = false;
  /** The client closed the connection before the answer was complete. */
  gone = false;
  /** Bytes of the answer were sent. From now on no other endpoint may answer. */
  started = false;

  constructor(response: ServerResponse, dialect: Dialect, requestId: string) {
    this.#response = response;
    this.#dialect = dialect;
    this.#requestId = requestId;
    response.on('close', () => this.#closed());
  }

  /** Calls back once when the client leaves early, at once when it has left. */
  onGone(callback: (() => void) | undefined): void {
    this.#onGone = callback;
    if (this.gone) callback?.();
  }

  set route(value: string) {
    this.#route = value;
  }

  /** Sends a comment every 10 s until the first byte: clients and proxies see that the stream is alive. */
  keepAlive(): void {
    this.#keepAlive ??= setInterval(() => {
      if (this.gone || this.started || this.#response.writableNeedDrain) return;
      this.#openStream();
      this.#response.write(': waiting for the model\n\n');
    }, KEEP_ALIVE_MS);
  }

  write(data: string | Uint8Array, upstream: Flow): void {
    if (this.gone) return;
    if (!this.started) {
      this.started = true;
      clearInterval(this.#keepAlive);
      this.#openStream();
    }
    if (this.#response.write(data) || this.#draining) return;
    this.#draining = true;
    upstream.pause();
    this.#stall = setTimeout(() => this.#response.destroy(), STALL_MS);
    this.#response.once('drain', () => {
      clearTimeout(this.#stall);
      this.#draining = false;
      upstream.resume();
    });
  }

  /** Ends a stream, after `data` if given. */
  endStream(data?: string | Uint8Array): void {
    if (this.gone) return;
    this.started = true;
    clearInterval(this.#keepAlive);
    this.#openStream();
    if (data === undefined) this.#response.end();
    else this.#response.end(data);
  }

  sendWhole(body: Buffer): void {
    if (this.gone) return;
    this.started = true;
    this.#writeHead({ 'content-type': 'application/json', 'content-length': body.byteLength });
    // Node writes latin1 text together with the headers, and bytes in a second write.
    if (body.byteLength <= TEXT_MAX) this.#response.end(body.toString('latin1'), 'latin1');
    else this.#response.end(body);
  }

  /** Sends an error: as the last event of an open stream, else as a whole answer with `retryAfterMs` in Retry-After. */
  sendError(error: ClientError, retryAfterMs?: number): void {
    clearInterval(this.#keepAlive);
    if (this.gone || this.#response.writableEnded) return;
    if (this.#response.headersSent) {
      this.#response.end(streamError(this.#dialect, error));
      return;
    }
    const { body, headers } = errorBody(this.#dialect, error, this.#requestId);
    const text = Buffer.from(JSON.stringify(body));
    this.#response.writeHead(error.status, {
      ...headers,
      // On a kept connection, Node would read the rest of a refused body.
      ...(!this.#response.req.complete && { connection: 'close' }),
      'content-length': text.byteLength,
      ...(retryAfterMs !== undefined && { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }),
      ...(this.#route !== '' && { 'x-berth-route': this.#route }),
    });
    this.#response.end(text);
  }

  #openStream(): void {
    if (this.#response.headersSent) return;
    this.#writeHead({ ...STREAM_HEADERS });
  }

  #writeHead(headers: OutgoingHttpHeaders): void {
    if (this.#route !== '') headers['x-berth-route'] = this.#route;
    // Anthropic's SDKs show this id in errors.
    if (this.#dialect === 'messages') headers['request-id'] = this.#requestId;
    this.#response.writeHead(200, headers);
  }

  #closed(): void {
    clearInterval(this.#keepAlive);
    clearTimeout(this.#stall);
    if (this.#response.writableFinished) return;
    this.gone = true;
    this.#onGone?.();
  }
}
