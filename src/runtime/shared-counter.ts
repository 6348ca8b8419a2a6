import type { Redis } from 'iovalkey';
import type { Logger } from 'pino';
import { RateLimiterValkey } from 'rate-limiter-flexible';
import type { Clock } from '../lib/clock.ts';
import { type Counters, memoryCounter, type MinuteCounter, minuteCounter, type Sum } from './counter.ts';
import { sharedHoldings } from './shared-holdings.ts';
import { SlowGuard } from './slow-guard.ts';
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

function sharedCounter(client: Redis, guard: SlowGuard, prefix: string): MinuteCounter {
  const keyPrefix = `berth:${prefix}`;
  const alone = memoryCounter();
  const shared = minuteCounter(
    new RateLimiterValkey({ ...WINDOW, storeClient: client, keyPrefix, customIncrTtlLuaScript: COUNT_SCRIPT }),
  );
  const addBoth: MinuteCounter['addBoth'] = async (first, second, points) => {
    const keys = [first.key, second].map((key) => `${keyPrefix}:${key}`);
    const answer = await client.eval(COUNT_BOTH_SCRIPT, 2, ...keys, points, WINDOW.duration, first.most);
    const [total, reset, ...other] = answer as [number, number, number?, number?];
    const [others, otherReset] = other;
    const sum = sumOf(total, reset);
    return others === undefined || otherReset === undefined ? [sum] : [sum, sumOf(others, otherReset)];
  };
  return {
    add: (...what) => guard.ask(() => shared.add(...what)).catch(() => alone.add(...what)),
    addBoth: (...what) => guard.ask(() => addBoth(...what)).catch(() => alone.addBoth(...what)),
  };
}

/**
 * Counters in Valkey or Redis for all replicas. In an outage each counts alone, also while Valkey is slow: limits loosen, and
 * no tenant stops.
 */
export function sharedCounters(url: string, log: Logger, clock: Clock): Counters {
  const without = 'limits and budgets are counted per replica';
  const client = connectValkey(url, { commandTimeout: COMMAND_MS, log, without });
  const guard = new SlowGuard(clock, (isSlow) => {
    if (isSlow) log.warn({ without }, 'Valkey is slow');
    else log.info('Valkey is quick again');
  });
  return {
    counter: (prefix) => sharedCounter(client, guard, prefix),
    holdings: sharedHoldings(client, guard),
    close: () => client.disconnect(),
  };
}
