import type { IncomingMessage } from 'node:http';
import { status } from '../local-server.ts';

/** A line of a watch as it passes through the proxy. */
export interface PassingEvent {
  type: string;
  object: { metadata?: { name?: string; namespace?: string; resourceVersion?: string } };
}

/** What the proxy does to the requests of one client. All off by default; may be changed at any time. */
export interface Faults {
  /** Breaks every request, and every open one when it is set through `setDown`. */
  down: boolean;
  /** Milliseconds before a request is passed on. */
  delayMs: number;
  /** Answers in the place of the API server. */
  refuse: ((request: IncomingMessage) => Refusal | undefined) | undefined;
  /** Passes watches on in pieces of this many bytes; 0 passes them as they come. */
  pieceBytes: number;
  /** Watches of these paths stay open and bring nothing, as when the other side is gone: what comes is lost. */
  silent: ((path: string) => boolean) | undefined;
  /** Swallows a watch event, so that what happened between two events is never seen. */
  swallow: ((event: PassingEvent) => boolean) | undefined;
  /** Brings every watch event twice. */
  twice: boolean;
  /** Milliseconds between bookmarks of the proxy's own, beside the one in a minute of the API server; 0 for none. */
  bookmarkMs: number;
}

export interface Refusal {
  status: number;
  reason: string;
  /** Seconds. */
  retryAfter?: number;
}

export function noFaults(): Faults {
  return {
    down: false,
    delayMs: 0,
    refuse: undefined,
    pieceBytes: 0,
    silent: undefined,
    swallow: undefined,
    twice: false,
    bookmarkMs: 0,
  };
}

/** Refuses the next `times` requests that match. */
export function refuseNext(times: number, refusal: Refusal, matches: (request: IncomingMessage) => boolean) {
  let left = times;
  return (request: IncomingMessage): Refusal | undefined => {
    if (left <= 0 || !matches(request)) return undefined;
    left -= 1;
    return refusal;
  };
}

/** Whether a watch begins with what is there already. Before its end no other bookmark may come. */
export function isStreamedList(request: { url?: string | undefined }): boolean {
  return new URL(request.url ?? '/', 'http://proxy').searchParams.get('sendInitialEvents') === 'true';
}

export function isWatch(request: { url?: string | undefined }): boolean {
  return new URL(request.url ?? '/', 'http://proxy').searchParams.get('watch') === 'true';
}

/** The line that ends a watch whose version is too old. */
export const EXPIRED_LINE = `${JSON.stringify({ type: 'ERROR', object: status(410, 'Expired', 'too old resource version') })}\n`;
