import type { Request, Response } from 'express';

/** Bytes that may wait for a reader who does not read; then the stream ends, and the client resumes it. */
const MAX_PENDING = 16 * 1024 * 1024;
const RETRY_MS = 2000;

/** One event. `data` is JSON text, so it has no line breaks. */
export interface StreamEvent {
  type: 'snapshot' | 'resync' | 'instance' | 'offer' | 'deleted';
  id: string;
  data: string;
}

export interface EventStream {
  send(event: StreamEvent): void;
  /** Keeps proxies from closing a quiet connection. */
  beat(): void;
  end(): void;
}

/** The last event a returning client saw. */
export function lastEventId(request: Request): string | undefined {
  const id = request.headers['last-event-id'];
  return typeof id === 'string' && id !== '' ? id.slice(0, 100) : undefined;
}

/** Answers with an event stream (WHATWG HTML, server-sent events). */
export function openEventStream(response: Response): EventStream {
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    // nginx holds back what it buffers.
    'x-accel-buffering': 'no',
  });
  response.write(`retry: ${RETRY_MS}\n\n`);

  function write(text: string): void {
    if (response.destroyed || response.writableEnded) return;
    response.write(text);
    if (response.writableLength > MAX_PENDING) response.destroy();
  }

  return {
    send: ({ type, id, data }) => write(`event: ${type}\nid: ${id}\ndata: ${data}\n\n`),
    beat: () => write(': keep-alive\n\n'),
    end: () => {
      response.end();
    },
  };
}
