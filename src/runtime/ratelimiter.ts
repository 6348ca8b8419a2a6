import type { Clock } from '../lib/clock.ts';

/** Doubles the wait of a key with each failure: client-go's ItemExponentialFailureRateLimiter. */
export class KeyBackoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #failures = new Map<string, number>();

  constructor({ firstMs, maxMs }: { firstMs: number; maxMs: number }) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
  }

  /** Counts one more failure of `key`; milliseconds until the key may run again. */
  next(key: string): number {
    const count = this.#failures.get(key) ?? 0;
    this.#failures.set(key, count + 1);
    return Math.min(this.#maxMs, this.#firstMs * 2 ** count);
  }

  /** Call it on success: the next failure counts as the first, and the key leaves the memory. */
  forget(key: string): void {
    this.#failures.delete(key);
  }
}

/** One rate over all keys: client-go's BucketRateLimiter. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(clock: Clock, { perSecond, burst }: { perSecond: number; burst: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = clock.monotonic();
  }

  /** Reserves a token; milliseconds until it is there. */
  next(): number {
    const now = this.#clock.monotonic();
    const filled = this.#tokens + ((now - this.#at) / 1000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst, filled) - 1;
    this.#at = now;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000;
  }
}

/**
 * The limiter of retries: per key one second that doubles up to a minute (Karpenter's bounds), and over all keys ten a
 * second with a burst of a hundred (client-go's default_rate_limiters.go). A first attempt never passes through it.
 */
export function retryLimiter(clock: Clock): Pick<KeyBackoff, 'next' | 'forget'> {
  const keys = new KeyBackoff({ firstMs: 1_000, maxMs: 60_000 });
  const bucket = new TokenBucket(clock, { perSecond: 10, burst: 100 });
  return {
    next: (key) => Math.max(keys.next(key), bucket.next()),
    forget: (key) => keys.forget(key),
  };
}
