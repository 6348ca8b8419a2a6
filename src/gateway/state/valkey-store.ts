import { ReplyError, type Redis } from 'iovalkey';
import type { Logger } from 'pino';
import type { PrincipalRef } from '../../access/principal.ts';
import { connectValkey } from '../../runtime/valkey.ts';
import { DialectError, type HistoryItem } from '../dialects/index.ts';
import {
  DEFAULT_STORE_BOUNDS,
  itemsById,
  nameOf,
  type ResponseStore,
  type StoreBounds,
  type StoredResponse,
} from './response-store.ts';

/** Ten times what the largest answer takes on a network of 1 Gbit/s. */
const COMMAND_MS = 2000;

/**
 * A tenant has two entries in one slot of a cluster. Names are the id of an API key, a slash, and the id of an answer or
 * item. `KEYS[1]` is a hash: `r:NAME` has the time when an answer expires and the answer, `i:NAME` the names of its
 * items, `o:ITEM` the name of the answer with an item, `size` the bytes of all answers. `KEYS[2]` orders the answers by
 * last use, in microseconds.
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
local id, json, items, ttl, max, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
-- A server that is short of memory may have evicted one of the two.
if redis.call('exists', data) ~= redis.call('exists', used) then redis.call('del', data, used) end
drop(id)
for _, old in ipairs(redis.call('zrangebyscore', used, '-inf', now - ttl * 1000)) do drop(old) end
local value = string.format('%.0f ', now + ttl * 1000) .. json
redis.call('hset', data, 'r:' .. id, value, 'i:' .. id, items)
for _, item in ipairs(cjson.decode(items)) do redis.call('hset', data, 'o:' .. item, id) end
redis.call('zadd', used, now, id)
local size = redis.call('hincrby', data, 'size', #value)
while size > max or redis.call('zcard', used) > most do
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
 * Keeps answers in Valkey or Redis: every replica can continue what another answered. The bounds per tenant hold in
 * bytes; over all tenants, the server's own memory limit holds. While the server cannot be reached, calls fail with 503.
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

  get(owner: PrincipalRef, id: string): Promise<StoredResponse | undefined> {
    return this.#read(owner.namespace, nameOf(owner, id));
  }

  async put(owner: PrincipalRef, id: string, stored: StoredResponse, most: number): Promise<void> {
    const json = JSON.stringify(stored);
    const { ttlMs, maxSizePerTenant } = this.#bounds;
    if (Buffer.byteLength(json) > maxSizePerTenant || most < 1) return;
    const ids = new Set(stored.items.flatMap((item) => item.id ?? []));
    const items = JSON.stringify([...ids].map((item) => nameOf(owner, item)));
    await this.#run(PUT, owner.namespace, nameOf(owner, id), json, items, ttlMs, maxSizePerTenant, most);
  }

  async delete(owner: PrincipalRef, id: string): Promise<boolean> {
    return (await this.#run(DELETE, owner.namespace, nameOf(owner, id))) === 1;
  }

  async findItems(owner: PrincipalRef, ids: readonly string[]): Promise<Map<string, readonly HistoryItem[]>> {
    if (ids.length === 0) return new Map();
    const { namespace } = owner;
    const fields = ids.map((id) => `o:${nameOf(owner, id)}`);
    const names = await this.#reach(this.#client.hmget(dataOf(namespace), ...fields));
    const known = [...new Set(names)].filter((name) => name !== null);
    const wanted = new Set(ids);
    const answers = new Map(
      await Promise.all(
        known.map(async (name) => [name, itemsById((await this.#read(namespace, name))?.items ?? [], wanted)] as const),
      ),
    );
    const found = new Map<string, readonly HistoryItem[]>();
    for (const [index, id] of ids.entries()) {
      const items = answers.get(names[index] ?? '')?.get(id);
      if (items !== undefined) found.set(id, items);
    }
    return found;
  }

  close(): void {
    this.#client.disconnect();
  }

  async #read(tenant: string, name: string): Promise<StoredResponse | undefined> {
    const json = await this.#run(GET, tenant, name);
    return typeof json === 'string' ? (JSON.parse(json) as StoredResponse) : undefined;
  }

  #run(script: string, tenant: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#reach(this.#client.eval(script, 2, dataOf(tenant), `${dataOf(tenant)}:used`, ...args));
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

function dataOf(tenant: string): string {
  return `berth:tenant-responses:{${tenant}}`;
}
