import { once } from 'node:events';
import type { Request, Response } from 'express';
import type { Clock } from '../../../lib/clock.ts';

/** Bytes that may wait for one client that does not read. */
const MAX_PENDING = 16 * 1024 * 1024;
const RETRY_MS = 2000;

/** The events of a log. */
export type LogEventType = 'line' | 'restart' | 'gap' | 'waiting' | 'end';

/** One event. `data` is JSON text, so it has no line breaks. */
export interface StreamEvent {
  type: 'snapshot' | 'resync' | 'instance' | 'offer' | 'deleted' | 'event' | LogEventType;
  /** Without it the client keeps the id of the event before. */
  id?: string;
  data: string;
}

/** The types of one answer, the most specific one first: it decides (RFC 9110 section 12.5.1). */
const ANSWERS = ['application/json', 'application/*', '*/*'];

/** Whether a client would rather have events than one answer: of two that it likes as much, the one that it names first. */
export function wantsEvents({ headers: { accept = '' } }: Pick<Request, 'headers'>): boolean {
  const named = accept.split(',').filter((part) => part.includes('/'));
  const wanted = named.map((part) => {
    const [type = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase());
    return { type, weight: Number(parameters.find((one) => one.startsWith('q='))?.slice(2) ?? 1) };
  });
  const events = wanted.findIndex(({ type }) => type === 'text/event-stream');
  const weight = wanted[events]?.weight ?? 0;
  if (!(weight > 0)) return false;
  const answer = ANSWERS.map((name) => wanted.findIndex(({ type }) => type === name)).find((index) => index >= 0);
  const other = answer === undefined ? undefined : wanted[answer];
  if (other === undefined || answer === undefined || weight > other.weight || !(other.weight > 0)) return true;
  return weight === other.weight && (other.type !== 'application/json' || events < answer);
}

/** The last event that a returning client saw. */
export function lastEventId(request: Request): string | undefined {
  const id = request.headers['last-event-id'];
  return typeof id === 'string' && id !== '' ? id.slice(0, 100) : undefined;
}

/** The share of the tenant in the bytes that wait. */
interface PendingShare {
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/**
 * An answer that is an event stream (WHATWG HTML, server-sent events). It ends when too many bytes wait for its client,
 * or for all clients of the tenant; the client can resume it.
 */
export class EventStream {
  readonly #response: Response;
  readonly #share: PendingShare;
  #pending = 0;

  constructor(response: Response, share: PendingShare) {
    this.#response = response;
    this.#share = share;
    response.on('drain', () => this.forget());
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      // Without it nginx would buffer the events.
      'x-accel-buffering': 'no',
    });
    response.write(`retry: ${RETRY_MS}\n\n`);
  }

  send({ type, id, data }: StreamEvent): void {
    this.#write(`event: ${type}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`);
  }

  /** Resolves when the client has taken what was sent, or is gone: who waits for it needs no memory for a slow client. */
  async ready(): Promise<void> {
    const response = this.#response;
    if (!response.writableNeedDrain || response.destroyed) return;
    const over = new AbortController();
    const { signal } = over;
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]).catch(
      () => undefined,
    );
    over.abort();
  }

  /** Writes a comment, which keeps proxies from closing an idle connection. */
  beat(): void {
    this.#write(': keep-alive\n\n');
  }

  end(): void {
    this.#response.end();
  }

  /** Counts no byte as waiting any more. */
  forget(): void {
    this.#share.give(this.#pending);
    this.#pending = 0;
  }

  #write(text: string): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    this.#response.write(text);
    if (!this.#mayWait(this.#response.writableLength)) this.#response.destroy();
  }

  #mayWait(bytes: number): boolean {
    this.forget();
    if (bytes > MAX_PENDING || !this.#share.take(bytes)) return false;
    this.#pending = bytes;
    return true;
  }
}

/** Milliseconds that a log or a history is followed, in all and without an event. A client goes on with Last-Event-ID. */
const LIFE_MS = 60 * 60_000;
const IDLE_MS = 15 * 60_000;

/** Ends a stream after its life, and after a time without an event. Returns what says that there is one. */
export function limitLife(stream: EventStream, clock: Clock, ended: AbortController): () => void {
  const stop = (): void => {
    ended.abort();
    stream.end();
  };
  const cancelLife = clock.setTimeout(stop, LIFE_MS);
  let cancelIdle = clock.setTimeout(stop, IDLE_MS);
  ended.signal.addEventListener('abort', () => {
    cancelLife();
    cancelIdle();
  });
  return () => {
    cancelIdle();
    if (!ended.signal.aborted) cancelIdle = clock.setTimeout(stop, IDLE_MS);
  };
}
