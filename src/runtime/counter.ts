import { RateLimiterMemory, type RateLimiterAbstract } from 'rate-limiter-flexible';

/** Sums per key over windows of one minute. */
export interface MinuteCounter {
  /** Adds points, or takes back negative ones. Returns the sum of the window and the milliseconds until it ends. */
  add(key: string, points: number): Promise<{ total: number; resetMs: number }>;
}

/** @param limiter with a duration of 60 s: in memory, or one of rate-limiter-flexible's shared stores */
export function minuteCounter(limiter: RateLimiterAbstract): MinuteCounter {
  return {
    async add(key, points) {
      const state = points < 0 ? await limiter.reward(key, -points) : await limiter.penalty(key, points);
      return { total: state.consumedPoints, resetMs: Math.max(1, state.msBeforeNext) };
    },
  };
}

export function memoryCounter(): MinuteCounter {
  return minuteCounter(new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: 60 }));
}

export interface Counters {
  /** @param prefix the name of what is counted */
  counter(prefix: string): MinuteCounter;
  close(): void;
}

/** Counters of this process alone. */
export function localCounters(): Counters {
  return { counter: () => memoryCounter(), close: () => undefined };
}
