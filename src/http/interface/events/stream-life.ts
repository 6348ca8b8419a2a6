import type { Clock } from '../../../lib/clock.ts';
import type { EventStream } from './event-stream.ts';

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
