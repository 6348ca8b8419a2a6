import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { countUnread } from '../../lib/unread-answers.ts';
import { DialectError, errorBody, streamError, type ClientError, type Dialect } from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import { noRoom } from './answer-share.ts';
import { ClientGoneError } from './read-body.ts';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // `no-transform`: a proxy that compresses would hold events back.
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

const TEXT_MAX = 16 * 1024;
/** A stream that is silent for this long, or twice as long at most, gets a sign of life. */
const KEEP_ALIVE_MS = 10_000;
const WAITING = ': waiting for the model\n\n';
/** Anthropic's own, which its clients skip. Before `message_start` not all of them do, so a comment goes out there. */
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const NEWLINE = 0x0a;
const RETURN = 0x0d;
/** A client that reads nothing for this long is taken as gone. */
const STALL_MS = 300_000;
/** The same of one whose call was cut. */
const LAST_WORDS_MS = 1000;

const CONTINUED = 'x-berth-continued';

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
  readonly #headers: Record<string, string> = {};
  #keepAlive: NodeJS.Timeout | undefined;
  #stall: NodeJS.Timeout | undefined;
  #lastWords: NodeJS.Timeout | undefined;
  /** What waits for a client that does not read, of the share of its tenant. */
  #unread: BodyHold | undefined;
  #onOver: ((why: Error) => void) | undefined;
  #draining = false;
  #mayGoOn = false;
  /** Something was written since the last sign of life was due. */
  #isBusy = false;
  /** What was written ends with a whole event. One of many megabytes goes out in pieces. */
  #isBetweenEvents = true;
  /** The client closed the connection before the answer was complete. */
  gone = false;
  /** Why the gateway ends the call before its answer is complete. */
  cutBy: DialectError | undefined;
  /** Bytes of the answer were sent. From now on no other endpoint may answer. */
  started = false;

  constructor(response: ServerResponse, dialect: Dialect, requestId: string) {
    this.#response = response;
    this.#dialect = dialect;
    this.#requestId = requestId;
    response.on('close', () => this.#closed());
  }

  /** From now on what the client has not read is held of the share of its tenant. */
  countUnread(hold: BodyHold): void {
    this.#unread = hold;
  }

  /** Why the call is over before its answer is complete; undefined as long as it goes on. */
  get over(): Error | undefined {
    return this.gone ? new ClientGoneError('The client left.') : this.cutBy;
  }

  /** Calls back once when the client leaves early or the call is cut, at once when it is over already. */
  onOver(callback: ((why: Error) => void) | undefined): void {
    this.#onOver = callback;
    const { over } = this;
    if (over !== undefined) callback?.(over);
  }

  /** Ends the call: whoever serves it tells the client why. */
  cut(why: DialectError): void {
    if (this.over !== undefined || this.#response.writableEnded) return;
    this.cutBy = why;
    this.#lastWords = setTimeout(() => this.#response.destroy(), LAST_WORDS_MS);
    this.#onOver?.(why);
  }

  set route(value: string) {
    this.#route = value;
  }

  /** Another server may go on with the stream: what comes behind the stream says how often one did. */
  announceContinuations(): void {
    this.#mayGoOn = true;
  }

  set continuations(count: number) {
    this.#response.addTrailers({ [CONTINUED]: String(count) });
  }

  /** Headers that go with any answer. */
  add(headers: Readonly<Record<string, string>>): void {
    Object.assign(this.#headers, headers);
  }

  /**
   * Keeps a stream alive until its end: when it is silent, a comment or a `ping` event shows clients and proxies that it
   * is not dead. One timer for each stream. Nothing is added to what the client has not read yet.
   */
  keepAlive(): void {
    this.#keepAlive ??= setInterval(() => this.#signal(), KEEP_ALIVE_MS);
  }

  #signal(): void {
    const isBusy = this.#isBusy;
    this.#isBusy = false;
    if (isBusy || this.gone || !this.#isBetweenEvents || this.#draining || this.#response.writableNeedDrain) return;
    this.#openStream();
    this.#response.write(this.started && this.#dialect === 'messages' ? PING : WAITING);
  }

  write(data: string | Uint8Array, upstream: Flow): void {
    if (this.gone) return;
    if (!this.started) {
      this.started = true;
      this.#openStream();
    }
    this.#isBusy = true;
    this.#isBetweenEvents = endsWithBlank(data);
    if (this.#response.write(data)) return;
    this.#holdUnread();
    if (this.#draining) return;
    this.#draining = true;
    upstream.pause();
    this.#stall = setTimeout(() => this.#response.destroy(), STALL_MS);
    this.#response.once('drain', () => {
      clearTimeout(this.#stall);
      this.#draining = false;
      this.#unread?.keep(this.#response.writableLength);
      upstream.resume();
    });
  }

  /** A client that does not read has its call cut where there is no room for what it has not read. */
  #holdUnread(): void {
    const { writableLength } = this.#response;
    const error = this.#unread && noRoom(this.#unread, this.#unread.keep(writableLength));
    if (error === undefined) return;
    this.#unread?.keepAnyway(writableLength);
    this.cut(new DialectError(error));
  }

  /** Nothing more is to come. Whoever made the answer held it until now. */
  #holdRest(): void {
    const { writableLength } = this.#response;
    this.#unread?.keepAnyway(writableLength);
    countUnread(this.#response, writableLength);
    this.#response.once('finish', () => this.#unread?.release());
  }

  /** Ends a stream, after `data` if given. */
  endStream(data?: string | Uint8Array): void {
    if (this.gone) return;
    this.started = true;
    clearInterval(this.#keepAlive);
    this.#openStream();
    if (data === undefined) this.#response.end();
    else this.#response.end(data);
    this.#holdRest();
  }

  sendWhole(body: Buffer, contentType = 'application/json'): void {
    if (this.gone) return;
    this.started = true;
    this.#writeHead({ 'content-type': contentType, 'content-length': body.byteLength });
    // Node writes latin1 text together with the headers, and bytes in a second write.
    if (body.byteLength <= TEXT_MAX) this.#response.end(body.toString('latin1'), 'latin1');
    else this.#response.end(body);
    this.#holdRest();
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
      ...this.#headers,
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
    // Only chunks have something behind them, and HTTP/1.0 has none.
    const trailer = this.#mayGoOn && this.#response.req.httpVersion !== '1.0' ? { trailer: CONTINUED } : {};
    this.#writeHead({ ...STREAM_HEADERS, ...trailer });
  }

  #writeHead(headers: OutgoingHttpHeaders): void {
    if (this.#route !== '') headers['x-berth-route'] = this.#route;
    // Anthropic's SDKs show this id in errors.
    if (this.#dialect === 'messages') headers['request-id'] = this.#requestId;
    this.#response.writeHead(200, Object.assign(headers, this.#headers));
  }

  #closed(): void {
    clearInterval(this.#keepAlive);
    clearTimeout(this.#stall);
    clearTimeout(this.#lastWords);
    this.#unread?.release();
    if (this.#response.writableFinished) return;
    this.gone = true;
    this.#onOver?.(new ClientGoneError('The client left.'));
  }
}

/** Whether the last line of bytes is blank. A piece that holds a line end alone may say no in error, which costs nothing. */
function endsWithBlank(data: string | Uint8Array): boolean {
  const end = data.length - 1;
  const code = (at: number): number | undefined => (typeof data === 'string' ? data.charCodeAt(at) : data[at]);
  if (code(end) !== NEWLINE) return false;
  return code(end - 1) === NEWLINE || (code(end - 1) === RETURN && code(end - 2) === NEWLINE);
}
