import type { Clock } from '../../lib/clock.ts';

export interface BackoffOptions {
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  firstMs: number;
  maxMs: number;
  /** A pause this long between two failures starts from the beginning. */
  resetMs: number;
}

export interface Backoff {
  /** How long to wait after one more failure: doubling, capped, with up to as much again at random. */
  next(): number;
}

/** client-go's NewExponentialBackoffManager with factor 2 and jitter 1. */
export function createBackoff(options: BackoffOptions): Backoff {
  const { clock, random, firstMs, maxMs, resetMs } = options;
  let base = firstMs;
  let last = -Infinity;
  return {
    next() {
      const now = clock.monotonic();
      if (now - last > resetMs) base = firstMs;
      last = now;
      const wait = base * (1 + random());
      base = Math.min(base * 2, maxMs);
      return wait;
    },
  };
}
