import { randomUUID } from 'node:crypto';
import type { Redis } from 'iovalkey';
import type { SharedHoldings } from './counter.ts';
import type { SlowGuard } from './slow-guard.ts';

/** Milliseconds for which a replica counts that notes nothing more. It notes anew what it still holds long before. */
const KEPT_MS = 30_000;

/**
 * `KEYS[1]` is a hash with a field for each replica: what it holds, what it knows to be used up, and when the field is
 * over by the clock of the server. Numbers are exact up to 2^53, which is nine billion in millionths.
 */
const NOTE_SCRIPT = `
local me, kept = ARGV[1], tonumber(ARGV[7])
local held, more, counted, max = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local others, known = 0, counted
local fields = redis.call('hgetall', KEYS[1])
for i = 1, #fields, 2 do
  local of, used, till = string.match(fields[i + 1], '^(%d+) (-?%d+) (%d+)$')
  if tonumber(till) <= now then redis.call('hdel', KEYS[1], fields[i])
  elseif fields[i] ~= me then
    others = others + tonumber(of)
    known = math.max(known, tonumber(used))
  end
end
local before = known + others + held
local fits = before + more <= max
if ARGV[6] == '1' then fits = before < max end
if fits then held = held + more end
redis.call('hset', KEYS[1], me, string.format('%.0f %.0f %.0f', held, counted, now + kept))
redis.call('pexpire', KEYS[1], kept)
return {fits and 1 or 0, string.format('%.0f', others)}
`;

/** What replicas hold, in Valkey or Redis. A replica that is gone counts for half a minute. */
export function sharedHoldings(client: Redis, guard: SlowGuard): SharedHoldings {
  const replica = randomUUID();
  return {
    async note(name, { held, more, counted, max, isFirst }) {
      const amounts = [held, more, counted, max].map(String);
      const args = [replica, ...amounts, isFirst ? 1 : 0, KEPT_MS];
      const ask = () => client.eval(NOTE_SCRIPT, 1, `berth:held:${name}`, ...args);
      // No caller waits for a note that holds nothing more.
      const [fits, others] = (await (more > 0n ? guard.ask(ask) : ask())) as [fits: number, others: string];
      return { fits: fits === 1, others: BigInt(others) };
    },
  };
}
