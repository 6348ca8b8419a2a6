import type { Request, Response } from 'express';

/** Bytes that may wait for a client that does not read. Beyond them the stream ends; the client can resume it. */
const MAX_PENDING = 16 * 1024 * 1024;
const RETRY_MS = 2000;

/** One event. `data` is JSON text, so it has no line breaks. */
export interface StreamEvent {
  type: 'snapshot' | 'resync' | 'instance' | 'offer' | 'deleted';
  id: string;
  data: string;
}

/** Whether a client asks for events instead of one answer. */
export function wantsEvents(request: Request): boolean {
  return /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(request.headers.accept ?? '');
}

/** The last event that a returning client saw. */
export function lastEventId(request: Request): string | undefined {
  const id = request.headers['last-event-id'];
  return typeof id === 'string' && id !== '' ? id.slice(0, 100) : undefined;
}

/** An answer that is an event stream (WHATWG HTML, server-sent events). */
export class EventStream {
  readonly #response: Response;

  constructor(response: Response) {
    this.#response = response;
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      // Without it nginx would buffer the events.
      'x-accel-buffering': 'no',
    });
    response.write(`retry: ${RETRY_MS}\n\n`);
  }

  send({ type, id, data }: StreamEvent): void {
    this.#write(`event: ${type}\nid: ${id}\ndata: ${data}\n\n`);
  }

  /** Writes a comment, which keeps proxies from closing an idle connection. */
  beat(): void {
    this.#write(': keep-alive\n\n');
  }

  end(): void {
    this.#response.end();
  }

  #write(text: string): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    this.#response.write(text);
    if (this.#response.writableLength > MAX_PENDING) this.#response.destroy();
  }
}
