import type { Redis } from 'iovalkey';
import type { Logger } from 'pino';
import { RateLimiterMemory, RateLimiterValkey } from 'rate-limiter-flexible';
import { type Counters, type MinuteCounter, minuteCounter, type Sum } from './counter.ts';
import { sharedHoldings } from './shared-holdings.ts';
import { connectValkey } from './valkey.ts';

/** The caller compares with the limit of the key. */
const WINDOW = { points: Number.MAX_SAFE_INTEGER, duration: 60 };
/** A call waits for Valkey no longer than this. */
const COMMAND_MS = 250;

const ADD = `
local function add(key, points, seconds)
  redis.call('set', key, 0, 'EX', seconds, 'NX')
  return redis.call('incrby', key, points), redis.call('pttl', key)
end
`;

/** The library's own script says `server`, which Redis does not know; both know `redis`. */
const COUNT_SCRIPT = `${ADD}
return {add(KEYS[1], ARGV[1], ARGV[2])}
`;

const COUNT_BOTH_SCRIPT = `${ADD}
local total, reset = add(KEYS[1], ARGV[1], ARGV[2])
if total > tonumber(ARGV[3]) then return {total, reset} end
return {total, reset, add(KEYS[2], ARGV[1], ARGV[2])}
`;

function sumOf(total: number, ttl: number): Sum {
  return { total, resetMs: Math.max(1, ttl) };
}

function sharedCounter(client: Redis, prefix: string): MinuteCounter {
  const keyPrefix = `berth:${prefix}`;
  const insurance = new RateLimiterMemory(WINDOW);
  const alone = minuteCounter(insurance);
  const shared = minuteCounter(
    new RateLimiterValkey({
      ...WINDOW,
      storeClient: client,
      keyPrefix,
      customIncrTtlLuaScript: COUNT_SCRIPT,
      insuranceLimiter: insurance,
    }),
  );
  return {
    add: (key, points) => shared.add(key, points),
    async addBoth(first, second, points) {
      const keys = [first.key, second].map((key) => `${keyPrefix}:${key}`);
      try {
        const answer = await client.eval(COUNT_BOTH_SCRIPT, 2, ...keys, points, WINDOW.duration, first.most);
        const [total, reset, ...other] = answer as [number, number, number?, number?];
        const [others, otherReset] = other;
        const sum = sumOf(total, reset);
        return others === undefined || otherReset === undefined ? [sum] : [sum, sumOf(others, otherReset)];
      } catch {
        return alone.addBoth(first, second, points);
      }
    },
  };
}

/** Counters in Valkey or Redis for all replicas. In an outage each counts alone: limits loosen, and no tenant stops. */
export function sharedCounters(url: string, log: Logger): Counters {
  const without = 'limits and budgets are counted per replica';
  const client = connectValkey(url, { commandTimeout: COMMAND_MS, log, without });
  return {
    counter: (prefix) => sharedCounter(client, prefix),
    holdings: sharedHoldings(client),
    close: () => client.disconnect(),
  };
}
