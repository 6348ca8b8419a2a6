import type { IncomingMessage } from 'node:http';
import type { Span } from './tracer.ts';

interface Held {
  span: Span;
  holders: number;
}

/** The span is a property of the request: a WeakMap with an entry per request slows every garbage collection. */
const SPAN = Symbol('span');

interface Traced extends IncomingMessage {
  [SPAN]?: Held;
}

function hold(held: Held): () => void {
  held.holders += 1;
  return () => {
    held.holders -= 1;
    if (held.holders === 0) held.span.end();
  };
}

/** Gives the request its span. That ends when the returned function was called, and those of everybody who holds it. */
export function setRequestSpan(request: Traced, span: Span): () => void {
  const held = { span, holders: 0 };
  request[SPAN] = held;
  return hold(held);
}

/** The span of a request; undefined where requests are not traced. */
export function requestSpan(request: Traced): Span | undefined {
  return request[SPAN]?.span;
}

/** Keeps the span of a request from its end, also when the client has left, until the returned function is called. */
export function holdRequestSpan(request: Traced): () => void {
  const held = request[SPAN];
  return held === undefined ? () => undefined : hold(held);
}
