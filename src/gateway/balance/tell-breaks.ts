import type { Logger } from 'pino';
import type { Clock } from '../../lib/clock.ts';
import type { FailureKind } from './breaker.ts';

/** Milliseconds between two lines that say that the same server is out. */
const QUIET_MS = 60_000;

/** Told why a server is to get no calls, each time that its breaker opens for all; `undefined` once it answers again. */
export type OnBreak = (why: FailureKind | undefined) => void;

/** Logs when a server is taken out for all callers and when it is back: two lines a minute at most. */
export function tellBreaks(log: Logger, clock: Clock, fields: object): OnBreak {
  let isOut = false;
  let toldAt = -QUIET_MS;
  return (why) => {
    if (why === undefined) {
      if (isOut) log.info(fields, 'Model server answers calls again');
      isOut = false;
      return;
    }
    const now = clock.monotonic();
    if (isOut || now - toldAt < QUIET_MS) return;
    log.warn({ ...fields, why }, 'Model server gets one call at a time, because those before failed');
    isOut = true;
    toldAt = now;
  };
}
