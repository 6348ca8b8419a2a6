import type { Clock } from '../../lib/clock.ts';

/** How long a key that failed has to wait. */
export interface RateLimiter {
  /** Counts one more failure of `key`; milliseconds until it may run again. */
  next(key: string): number;
  /** Starts from the beginning: call it on success, or the key stays in memory. */
  forget(key: string): void;
}

export interface BackoffLimits {
  firstMs: number;
  maxMs: number;
}

/** Doubling per key: client-go's ItemExponentialFailureRateLimiter. */
export function perKeyBackoff({ firstMs, maxMs }: BackoffLimits): RateLimiter {
  const failures = new Map<string, number>();
  return {
    next(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      return Math.min(maxMs, firstMs * 2 ** count);
    },
    forget(key) {
      failures.delete(key);
    },
  };
}

export interface BucketLimits {
  perSecond: number;
  burst: number;
}

/** Over all keys together: client-go's BucketRateLimiter. Reserves a token and says when it will be there. */
export function tokenBucket(clock: Clock, { perSecond, burst }: BucketLimits): () => number {
  let tokens = burst;
  let at = clock.monotonic();
  return () => {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + ((now - at) / 1000) * perSecond) - 1;
    at = now;
    return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
  };
}

/**
 * The limiter of retries: per key 1 s doubling to a minute (Karpenter's bounds), and ten a second over all keys with a
 * burst of a hundred (client-go's default_rate_limiters.go). First attempts never pass through here.
 */
export function retryLimiter(clock: Clock): RateLimiter {
  const keys = perKeyBackoff({ firstMs: 1_000, maxMs: 60_000 });
  const bucket = tokenBucket(clock, { perSecond: 10, burst: 100 });
  return {
    next: (key) => Math.max(keys.next(key), bucket()),
    forget: (key) => keys.forget(key),
  };
}
