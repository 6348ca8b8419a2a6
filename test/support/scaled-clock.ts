import { type Clock, sleepWith, systemClock } from '../../src/lib/clock.ts';

/** The machine's clock with every duration `factor` times shorter: pauses of a real system without waiting for them. */
export function scaledClock(factor: number): Clock {
  const clock = systemClock();
  const start = clock.monotonic();
  const schedule: Clock['setTimeout'] = (callback, ms) => clock.setTimeout(callback, ms / factor);
  return {
    now: () => clock.now(),
    monotonic: () => start + (clock.monotonic() - start) * factor,
    setTimeout: schedule,
    sleep: (ms, signal) => sleepWith(schedule, ms, signal),
  };
}

/** The same, and wall time passes faster too: for one process that compares its own stamps with it. */
export function hurriedClock(factor: number): Clock {
  const scaled = scaledClock(factor);
  const [wall, start] = [scaled.now(), scaled.monotonic()];
  return { ...scaled, now: () => wall + scaled.monotonic() - start };
}
