import { ReplyError, type Redis } from 'iovalkey';
import type { Logger } from 'pino';
import type { PrincipalRef } from '../../access/principal.ts';
import { connectValkey } from '../../runtime/valkey.ts';
import { DialectError } from '../dialects/index.ts';
import { writeItems } from './item-lines.ts';
import {
  DEFAULT_STORE_BOUNDS,
  idIn,
  nameOf,
  namesOfItems,
  sizeOfNames,
  type NewResponse,
  type Part,
  type ResponseStore,
  type StoreBounds,
  type StoredPart,
} from './response-store.ts';

/** Ten times what the largest answer takes on a network of 1 Gbit/s. */
const COMMAND_MS = 2000;

/**
 * A tenant has two entries in one slot of a cluster. Names are the id of an API key, a slash, and the id of an answer or
 * item. `KEYS[1]` is a hash: `r:NAME` has the time when an answer expires and, each in a
 * line, what is known of it, the answer and its items; `i:NAME` has the names of its items, `o:ITEM` the name of the
 * answer with an item, `s:NAME` how much the answer takes with all that, and `size` how much all answers do. `KEYS[2]` orders the answers by last use, in microseconds.
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
  -- An answer that an earlier version stored was counted without its names.
  size = redis.call('hget', data, 's:' .. id) or size
  redis.call('hdel', data, 'r:' .. id, 'i:' .. id, 's:' .. id)
  redis.call('hincrby', data, 'size', -size)
  return 1
end
`;

const PUT = `${HEAD}
local id, text, items, ttl, max, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local own = tonumber(ARGV[7])
-- A server that is short of memory may have evicted one of the two.
if redis.call('exists', data) ~= redis.call('exists', used) then redis.call('del', data, used) end
drop(id)
for _, old in ipairs(redis.call('zrangebyscore', used, '-inf', now - ttl * 1000)) do drop(old) end
local value = string.format('%.0f ', now + ttl * 1000) .. text
redis.call('hset', data, 'r:' .. id, value, 'i:' .. id, items, 's:' .. id, own)
for _, item in ipairs(cjson.decode(items)) do redis.call('hset', data, 'o:' .. item, id) end
redis.call('zadd', used, now, id)
local size = redis.call('hincrby', data, 'size', own)
while size > max or redis.call('zcard', used) > most do
  drop(redis.call('zrange', used, 0, 0)[1])
  size = tonumber(redis.call('hget', data, 'size'))
end
redis.call('pexpire', data, ttl)
redis.call('pexpire', used, ttl)
`;

const GET = `${HEAD}
local id, part = ARGV[1], ARGV[2]
local value = redis.call('hget', data, 'r:' .. id)
if not value then return false end
local space = string.find(value, ' ', 1, true)
if tonumber(string.sub(value, 1, space - 1)) <= now then
  drop(id)
  return false
end
redis.call('zadd', used, 'XX', now, id)
local head = string.find(value, '\\n', space, true)
local response = string.find(value, '\\n', head + 1, true)
local from, to = head + 1, response - 1
if part == 'items' then from, to = response + 1, -1 end
return {string.sub(value, space + 1, head - 1), string.sub(value, from, to)}
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

  async get(owner: PrincipalRef, id: string, part: Part): Promise<StoredPart | undefined> {
    const found = await this.#run(GET, owner.namespace, nameOf(owner, id), part);
    if (found === null) return undefined;
    const [head, text] = found as [head: string, text: string];
    return { ...(JSON.parse(head) as Omit<StoredPart, 'text'>), text };
  }

  async put(owner: PrincipalRef, id: string, stored: NewResponse, most: number): Promise<void> {
    const { items, response, ...head } = stored;
    const text = [JSON.stringify(head), JSON.stringify(response), writeItems(items)].join('\n');
    const { ttlMs, maxSizePerTenant } = this.#bounds;
    const name = nameOf(owner, id);
    const names = namesOfItems(owner, items);
    // Each name is there twice, and with an item the name of its answer.
    const size = Buffer.byteLength(text) + 2 * sizeOfNames(name, names) + names.length * name.length;
    if (size > maxSizePerTenant || most < 1) return;
    await this.#run(PUT, owner.namespace, name, text, JSON.stringify(names), ttlMs, maxSizePerTenant, most, size);
  }

  async delete(owner: PrincipalRef, id: string): Promise<boolean> {
    return (await this.#run(DELETE, owner.namespace, nameOf(owner, id))) === 1;
  }

  async findAnswers(owner: PrincipalRef, items: readonly string[]): Promise<Map<string, string>> {
    if (items.length === 0) return new Map();
    const fields = items.map((item) => `o:${nameOf(owner, item)}`);
    const names = await this.#reach(this.#client.hmget(dataOf(owner.namespace), ...fields));
    return new Map(
      items.flatMap((item, index) => {
        const name = names[index];
        return typeof name === 'string' ? [[item, idIn(name)] as const] : [];
      }),
    );
  }

  close(): void {
    this.#client.disconnect();
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
  return `berth:responses-of:{${tenant}}`;
}
