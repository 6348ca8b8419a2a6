import { ReplyError, type Redis } from 'iovalkey';
import type { Logger } from 'pino';
import { connectValkey } from '../../runtime/valkey.ts';
import { DialectError, type HistoryItem } from '../dialects/index.ts';
import {
  DEFAULT_STORE_BOUNDS,
  itemsById,
  type ResponseStore,
  type StoreBounds,
  type StoredResponse,
} from './response-store.ts';

/** Ten times what the largest answer takes on a network of 1 Gbit/s. */
const COMMAND_MS = 2000;

/**
 * An API key has two entries in one slot of a cluster. `KEYS[1]` is a hash: `r:ID` has the time when an answer expires
 * and the answer, `i:ID` the ids of its items, `o:ITEM` the id of the answer with an item, `size` the bytes of all
 * answers. `KEYS[2]` orders the answers by last use, in microseconds.
 */
const HEAD = `
local data, used = KEYS[1], KEYS[2]
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
local function drop(id)
  redis.call('zrem', used, id)
  local size = redis.call('hstrlen', data, 'r:' .. id)
  if size == 0 then return 0 end
  for _, item in ipairs(cjson.decode(redis.call('hget', data, 'i:' .. id))) do
    if redis.call('hget', data, 'o:' .. item) == id then redis.call('hdel', data, 'o:' .. item) end
  end
  redis.call('hdel', data, 'r:' .. id, 'i:' .. id)
  redis.call('hincrby', data, 'size', -size)
  return 1
end
`;

const PUT = `${HEAD}
local id, json, items, ttl, max = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
-- A server that is short of memory may have evicted one of the two.
if redis.call('exists', data) ~= redis.call('exists', used) then redis.call('del', data, used) end
drop(id)
for _, old in ipairs(redis.call('zrangebyscore', used, '-inf', now - ttl * 1000)) do drop(old) end
local value = string.format('%.0f ', now + ttl * 1000) .. json
redis.call('hset', data, 'r:' .. id, value, 'i:' .. id, items)
for _, item in ipairs(cjson.decode(items)) do redis.call('hset', data, 'o:' .. item, id) end
redis.call('zadd', used, now, id)
local size = redis.call('hincrby', data, 'size', #value)
while size > max do
  drop(redis.call('zrange', used, 0, 0)[1])
  size = tonumber(redis.call('hget', data, 'size'))
end
redis.call('pexpire', data, ttl)
redis.call('pexpire', used, ttl)
`;

const GET = `${HEAD}
local id = ARGV[1]
local value = redis.call('hget', data, 'r:' .. id)
if not value then return false end
local space = string.find(value, ' ', 1, true)
if tonumber(string.sub(value, 1, space - 1)) <= now then
  drop(id)
  return false
end
redis.call('zadd', used, 'XX', now, id)
return string.sub(value, space + 1)
`;

const DELETE = `${HEAD}
return drop(ARGV[1])
`;

/**
 * Keeps answers in Valkey or Redis: every replica can continue what another answered. The bounds per key hold in bytes;
 * over all keys, the server's own memory limit holds. While the server cannot be reached, calls fail with 503.
 */
export class ValkeyStore implements ResponseStore {
  readonly #client: Redis;
  readonly #log: Logger;
  readonly #bounds: StoreBounds;

  /** @param url redis:, rediss:, valkey: or valkeys: */
  constructor(url: string, log: Logger, bounds: StoreBounds = DEFAULT_STORE_BOUNDS) {
    this.#client = connectValkey(url, { commandTimeout: COMMAND_MS, log, without: 'no response is stored' });
    this.#log = log;
    this.#bounds = bounds;
  }

  async get(keyId: string, id: string): Promise<StoredResponse | undefined> {
    const json = await this.#run(GET, keyId, id);
    return typeof json === 'string' ? (JSON.parse(json) as StoredResponse) : undefined;
  }

  async put(keyId: string, id: string, stored: StoredResponse): Promise<void> {
    const json = JSON.stringify(stored);
    const { ttlMs, maxSizePerKey } = this.#bounds;
    if (Buffer.byteLength(json) > maxSizePerKey) return;
    const items = JSON.stringify([...new Set(stored.items.flatMap((item) => item.id ?? []))]);
    await this.#run(PUT, keyId, id, json, items, ttlMs, maxSizePerKey);
  }

  async delete(keyId: string, id: string): Promise<boolean> {
    return (await this.#run(DELETE, keyId, id)) === 1;
  }

  async findItems(keyId: string, ids: readonly string[]): Promise<Map<string, readonly HistoryItem[]>> {
    if (ids.length === 0) return new Map();
    const owners = await this.#reach(this.#client.hmget(dataOf(keyId), ...ids.map((id) => `o:${id}`)));
    const known = [...new Set(owners)].filter((owner) => owner !== null);
    const wanted = new Set(ids);
    const answers = new Map(
      await Promise.all(
        known.map(async (owner) => [owner, itemsById((await this.get(keyId, owner))?.items ?? [], wanted)] as const),
      ),
    );
    const found = new Map<string, readonly HistoryItem[]>();
    for (const [index, id] of ids.entries()) {
      const items = answers.get(owners[index] ?? '')?.get(id);
      if (items !== undefined) found.set(id, items);
    }
    return found;
  }

  close(): void {
    this.#client.disconnect();
  }

  #run(script: string, keyId: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#reach(this.#client.eval(script, 2, dataOf(keyId), `${dataOf(keyId)}:used`, ...args));
  }

  async #reach<T>(command: Promise<T>): Promise<T> {
    try {
      return await command;
    } catch (err) {
      // The connection itself logs when it is lost.
      if (err instanceof ReplyError) this.#log.error({ err }, 'Valkey refused to serve stored responses');
      throw new DialectError({
        status: 503,
        message: 'Stored responses cannot be reached at the moment. Try again shortly.',
      });
    }
  }
}

function dataOf(keyId: string): string {
  return `berth:responses:{${keyId}}`;
}
