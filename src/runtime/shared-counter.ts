import type { Logger } from 'pino';
import { RateLimiterMemory, RateLimiterValkey } from 'rate-limiter-flexible';
import { type Counters, minuteCounter } from './counter.ts';
import { connectValkey } from './valkey.ts';

/** The caller compares with the limit of the key. */
const WINDOW = { points: Number.MAX_SAFE_INTEGER, duration: 60 };
/** A call waits for Valkey no longer than this. */
const COMMAND_MS = 250;

/** The library's own script says `server`, which Redis does not know; both know `redis`. */
const COUNT_SCRIPT = `
redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
return {redis.call('incrby', KEYS[1], ARGV[1]), redis.call('pttl', KEYS[1])}
`;

/** Counters in Valkey or Redis for all replicas. In an outage each counts alone: limits loosen, and no tenant stops. */
export function sharedCounters(url: string, log: Logger): Counters {
  const client = connectValkey(url, { commandTimeout: COMMAND_MS, log, without: 'limits are counted per replica' });
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
    close: () => client.disconnect(),
  };
}
