import type { Logger } from 'pino';
import { RateLimiterMemory, RateLimiterValkey } from 'rate-limiter-flexible';
import { memoryCounter, type MinuteCounter, minuteCounter } from './counter.ts';
import { connectValkey } from './valkey.ts';

/** Any number: the limit is compared by the caller, who knows the key. */
const UNBOUNDED = Number.MAX_SAFE_INTEGER;
const WINDOW = { points: UNBOUNDED, duration: 60 };
/** Longer than this a call does not wait for Valkey. */
const COMMAND_MS = 250;

/** The library's own script with the name that Redis knows too: `server` is Valkey's alone. */
const COUNT_SCRIPT = `
redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
return {redis.call('incrby', KEYS[1], ARGV[1]), redis.call('pttl', KEYS[1])}
`;

export interface Counters {
  /** @param prefix tells apart what is counted */
  counter(prefix: string): MinuteCounter;
  close(): Promise<void>;
}

/** Counters of this process alone. */
export function localCounters(): Counters {
  return { counter: () => memoryCounter(), close: () => Promise.resolve() };
}

/**
 * Counters that all replicas share in Valkey or Redis. While it cannot be reached each replica counts alone, so an outage
 * loosens limits and stops nobody.
 *
 * @param url redis:, rediss:, valkey: or valkeys:
 */
export function sharedCounters(url: string, log: Logger): Counters {
  const client = connectValkey(url, {
    commandTimeout: COMMAND_MS,
    log,
    without: 'limits are counted per replica',
  });
  return {
    counter: (prefix) =>
      minuteCounter(
        new RateLimiterValkey({
          ...WINDOW,
          storeClient: client,
          keyPrefix: `berth:${prefix}`,
          customIncrTtlLuaScript: COUNT_SCRIPT,
          insuranceLimiter: new RateLimiterMemory(WINDOW),
        }),
      ),
    close: async () => {
      client.disconnect();
      await Promise.resolve();
    },
  };
}
