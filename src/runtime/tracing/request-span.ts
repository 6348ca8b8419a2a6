import type { IncomingMessage } from 'node:http';
import type { Span } from './tracer.ts';

/** The span is a property of the request: a WeakMap with an entry per request slows every garbage collection. */
const SPAN = Symbol('span');

interface Traced extends IncomingMessage {
  [SPAN]?: Span;
}

export function setRequestSpan(request: Traced, span: Span): void {
  request[SPAN] = span;
}

/** The span of a request; undefined where requests are not traced. */
export function requestSpan(request: Traced): Span | undefined {
  return request[SPAN];
}
