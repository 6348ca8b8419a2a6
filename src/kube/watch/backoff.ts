import type { Clock } from '../../lib/clock.ts';

export interface BackoffOptions {
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  firstMs: number;
  maxMs: number;
  /** After a pause this long between two failures the waits start again from `firstMs`. */
  resetMs: number;
}

/** client-go's NewExponentialBackoffManager with factor 2 and jitter 1. */
export class Backoff {
  readonly #options: BackoffOptions;
  #base: number;
  #last = -Infinity;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#base = options.firstMs;
  }

  /** Milliseconds to wait after one more failure: doubling, capped, with up to as much again at random. */
  next(): number {
    const { clock, random, firstMs, maxMs, resetMs } = this.#options;
    const now = clock.monotonic();
    if (now - this.#last > resetMs) this.#base = firstMs;
    this.#last = now;
    const wait = this.#base * (1 + random());
    this.#base = Math.min(this.#base * 2, maxMs);
    return wait;
  }
}
