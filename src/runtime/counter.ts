import { RateLimiterMemory, type RateLimiterAbstract } from 'rate-limiter-flexible';

/** The sum of a window, and the milliseconds until it ends. */
export interface Sum {
  total: number;
  resetMs: number;
}

/** Sums per key over windows of one minute. */
export interface MinuteCounter {
  /** Adds points, or takes back negative ones. */
  add(key: string, points: number): Promise<Sum>;
  /** Adds points to one key, and to another as well unless the sum of the first is more than `most` then. */
  addBoth(first: { key: string; most: number }, second: string, points: number): Promise<[Sum, Sum?]>;
}

/** @param limiter with a duration of 60 s: in memory, or one of rate-limiter-flexible's shared stores */
export function minuteCounter(limiter: RateLimiterAbstract): MinuteCounter {
  const add: MinuteCounter['add'] = async (key, points) => {
    const state = points < 0 ? await limiter.reward(key, -points) : await limiter.penalty(key, points);
    return { total: state.consumedPoints, resetMs: Math.max(1, state.msBeforeNext) };
  };
  return {
    add,
    async addBoth({ key, most }, second, points) {
      const sum = await add(key, points);
      return sum.total > most ? [sum] : [sum, await add(second, points)];
    },
  };
}

export function memoryCounter(): MinuteCounter {
  return minuteCounter(new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: 60 }));
}

/** What this replica holds of something, and what it would hold beside it. Amounts are whole and not negative, but `counted`. */
export interface Holding {
  held: bigint;
  more: bigint;
  /** What is used up already, as this replica knows it. Another one may know more. */
  counted: bigint;
  max: bigint;
  /** What it would hold may go beyond `max`, as long as everything before it does not reach that. */
  isFirst: boolean;
}

/** What all replicas hold of something together. */
export interface SharedHoldings {
  /**
   * Notes what this replica holds, with `more` where all replicas have room for it. Resolves with what the others hold.
   * Rejects while they cannot be asked.
   */
  note(name: string, holding: Holding): Promise<{ fits: boolean; others: bigint }>;
}

export interface Counters {
  /** @param prefix the name of what is counted */
  counter(prefix: string): MinuteCounter;
  /** Undefined where replicas share nothing. */
  holdings: SharedHoldings | undefined;
  close(): void;
}

/** Counters of this process alone. */
export function localCounters(): Counters {
  return { counter: () => memoryCounter(), holdings: undefined, close: () => undefined };
}
