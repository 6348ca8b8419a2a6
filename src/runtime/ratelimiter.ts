import { refOf } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import { Lru } from '../lib/lru.ts';

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
  readonly #mostMs: number;
  #tokens: number;
  #at: number;

  /** @param options mostMs: no token is longer away, and the debt of a storm is no larger */
  constructor(clock: Clock, { perSecond, burst, mostMs }: { perSecond: number; burst: number; mostMs: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#mostMs = mostMs;
    this.#tokens = burst;
    this.#at = clock.monotonic();
  }

  /** Reserves a token; milliseconds until it is there. */
  next(): number {
    const now = this.#clock.monotonic();
    const filled = this.#tokens + ((now - this.#at) / 1000) * this.#perSecond;
    const most = (this.#mostMs / 1000) * this.#perSecond;
    this.#tokens = Math.max(-most, Math.min(this.#burst, filled) - 1);
    this.#at = now;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#perSecond) * 1000;
  }
}

/** Milliseconds. No pause outlasts its cause by more, also after a storm in which thousands of keys failed at once. */
const LONGEST_MS = 60_000;

/** Namespaces whose retries are remembered. One that is forgotten begins with a whole burst. */
const MOST_OWNERS = 4096;

/**
 * The limiter of retries: per key one second that doubles up to a minute (Karpenter's bounds), and over all keys of a
 * namespace ten a second with a burst of a hundred (client-go's default_rate_limiters.go), but a minute at most: what is
 * due then goes out together, as many at a time as there are workers. A tenant whose objects fail makes only its own wait.
 * A first attempt never passes through it.
 */
export function retryLimiter(clock: Clock): Pick<KeyBackoff, 'next' | 'forget'> {
  const keys = new KeyBackoff({ firstMs: 1_000, maxMs: LONGEST_MS });
  const buckets = new Lru<string, TokenBucket>(MOST_OWNERS);
  const bucketOf = (key: string): TokenBucket => {
    const { namespace: owner = '' } = refOf(key);
    const bucket = buckets.get(owner) ?? new TokenBucket(clock, { perSecond: 10, burst: 100, mostMs: LONGEST_MS });
    buckets.set(owner, bucket);
    return bucket;
  };
  return {
    next: (key) => Math.max(keys.next(key), bucketOf(key).next()),
    forget: (key) => keys.forget(key),
  };
}
