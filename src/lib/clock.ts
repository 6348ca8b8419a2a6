/** The clock that every part gets passed in: tests drive another one. */
export interface Clock {
  /** Wall time, milliseconds since the epoch: for stamps that leave the process. */
  now(): number;
  /** Milliseconds since an arbitrary start, which never jump: for durations. */
  monotonic(): number;
  /** Calls `callback` once after `ms`; the returned function cancels it. */
  setTimeout(callback: () => void, ms: number): () => void;
  /** Resolves after `ms`, or when `signal` aborts: the caller checks the signal. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * What the wall clock shows now of a moment of the monotonic one, milliseconds since the epoch: it may have been wrong then.
 */
export function wallTimeOf(clock: Pick<Clock, 'now' | 'monotonic'>, moment: number): number {
  return clock.now() - clock.monotonic() + moment;
}

/** `sleep` in terms of a clock's own timers. */
export function sleepWith(schedule: Clock['setTimeout'], ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = schedule(finish, ms);
    signal?.addEventListener('abort', finish, { once: true });
  });
}

function schedule(callback: () => void, ms: number): () => void {
  const timer = setTimeout(callback, Math.max(0, ms));
  return () => clearTimeout(timer);
}

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimeout: schedule,
    sleep: (ms, signal) => sleepWith(schedule, ms, signal),
  };
}
