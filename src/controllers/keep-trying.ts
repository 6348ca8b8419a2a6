import type { Logger } from 'pino';
import type { Clock } from '../lib/clock.ts';

/** A leader that cannot begin for this long does not get to: another process, with connections of its own, should lead. */
const LIMIT_MS = 60_000;
const PAUSE_MS = 250;

/**
 * Does what a new leader begins with, and again after errors. False when it was not done within a minute, or the signal
 * aborted before. Never rejects: a lease that was lost meanwhile must not end the process.
 * @param what for the log
 */
export async function keepTrying(
  { clock, log }: { clock: Clock; log: Logger },
  what: string,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<boolean> {
  const limit = new AbortController();
  const cancel = clock.setTimeout(() => limit.abort(new Error('It took too long.')), LIMIT_MS);
  const over = AbortSignal.any([signal, limit.signal]);
  try {
    while (!over.aborted) {
      try {
        await work(over);
        return !over.aborted;
      } catch (error) {
        if (over.aborted) break;
        log.warn({ err: error, what }, 'A new leader could not begin; trying again');
        await clock.sleep(PAUSE_MS, over);
      }
    }
  } finally {
    cancel();
  }
  if (!signal.aborted) log.error({ what }, 'A new leader could not begin; another replica should lead');
  return false;
}
