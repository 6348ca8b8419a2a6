import { MOST_APART_MS } from '../../../ledger/interval.ts';
import type { GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';

type Preemptions = NonNullable<GpuInstanceStatus['preemptions']>;

const FIRST_MS = 5_000;
const LONGEST_MS = 300_000;
/** An instance that had less time than this is in the way again and again. */
const SHORT_MS = 60_000;

/** When a pause that began then is over; 0 where it began further in the future than clocks differ: one was wrong. */
export function pauseEndAfter(began: string, pauseMs: number, now: number): number {
  const from = Date.parse(began);
  return from > now + MOST_APART_MS ? 0 : from + pauseMs;
}

/** When an instance that was preempted may ask for a place again, milliseconds since the epoch; 0 for at once. */
export function pauseEnd(preemptions: Preemptions | undefined, now: number): number {
  if (preemptions === undefined) return 0;
  const pauseMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** (preemptions.count - 1));
  return pauseEndAfter(preemptions.lastTime, pauseMs, now);
}

/** The preemptions with one more. `upMs` is how long the start had been running. */
export function withPreemption(
  before: Preemptions | undefined,
  { now, upMs }: { now: number; upMs: number },
): Preemptions {
  const count = upMs < SHORT_MS ? (before?.count ?? 0) + 1 : 1;
  return { count, lastTime: new Date(now).toISOString() };
}
