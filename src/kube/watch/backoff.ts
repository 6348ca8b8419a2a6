import type { Clock } from '../../lib/clock.ts';

export interface BackoffOptions {
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  firstMs: number;
  maxMs: number;
  /** When nothing failed for this long after a wait, the next one starts again from `firstMs`. */
  resetMs: number;
}

/** client-go's NewExponentialBackoffManager with factor 2 and jitter 1. There the time of the wait counts as good. */
export class Backoff {
  readonly #options: BackoffOptions;
  #base: number;
  /** When the last wait was over. */
  #goodSince = -Infinity;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#base = options.firstMs;
  }

  /** Milliseconds to wait after one more failure: doubling, capped, with up to as much again at random. */
  next(): number {
    const { clock, random, firstMs, maxMs, resetMs } = this.#options;
    const now = clock.monotonic();
    if (now - this.#goodSince > resetMs) this.#base = firstMs;
    const wait = this.#base * (1 + random());
    this.#goodSince = now + wait;
    this.#base = Math.min(this.#base * 2, maxMs);
    return wait;
  }
}
