import { describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import { readHistory } from '../../../src/gateway/state/history.ts';
import { MemoryStore, type StoredResponse } from '../../../src/gateway/state/response-store.ts';
import { cpuTime } from '../../support/cpu-time.ts';
import { fakeClock } from '../../support/fake-clock.ts';

function stored(text: string, previous?: string): StoredResponse {
  const items = [
    { kind: 'message' as const, role: 'user' as const, parts: [{ type: 'text' as const, text }], id: `item-${text}` },
  ];
  return { items, response: { text }, ...(previous !== undefined && { previous }) };
}

const A: Principal = { namespace: 'tenant-a', keyId: 'a', name: 'a', scopes: ['models'] };
const B: Principal = { ...A, namespace: 'tenant-b', keyId: 'b' };
const MOST = 1_000_000;

function setup(bounds = { ttlMs: 1000, maxSizePerTenant: 600, maxSize: 1500 }) {
  const clock = fakeClock();
  return { clock, store: new MemoryStore(clock, bounds) };
}

describe('memory store of responses', () => {
  it('returns an answer to the key that stored it, and to no other', async () => {
    const { store } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    expect(await store.get(A, 'r1')).toEqual(stored('one'));
    expect(await store.get(B, 'r1')).toBeUndefined();
    expect(await store.delete(B, 'r1')).toBe(false);
    expect(await store.delete(A, 'r1')).toBe(true);
    expect(await store.get(A, 'r1')).toBeUndefined();
  });

  it('forgets after the time to live', async () => {
    const { store, clock } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    clock.stall(1000);
    expect(await store.get(A, 'r1')).toBeUndefined();
  });

  it('keeps the answers of the keys of one tenant apart', async () => {
    const { store } = setup();
    const other = { ...A, keyId: 'a2' };
    await store.put(A, 'r1', stored('one'), MOST);
    expect(await store.get(other, 'r1')).toBeUndefined();
    expect(await store.delete(other, 'r1')).toBe(false);
    expect((await store.findItems(other, ['item-one'])).size).toBe(0);
    expect((await store.findItems(A, ['item-one'])).size).toBe(1);
  });

  it('drops the least recently used answers of a tenant, over all its keys', async () => {
    const { store } = setup({ ttlMs: 1000, maxSizePerTenant: 1000, maxSize: 5000 });
    const other = { ...A, keyId: 'a2' };
    for (const id of ['r1', 'r2', 'r3']) await store.put(A, id, stored('x'.repeat(50)), MOST);
    await store.get(A, 'r1');
    for (const id of ['r4']) await store.put(other, id, stored('x'.repeat(50)), MOST);
    expect(await store.get(A, 'r2')).toBeUndefined();
    expect(await store.get(A, 'r1')).toBeDefined();
    expect(await store.get(other, 'r4')).toBeDefined();
  });

  it('keeps as many answers of a tenant as its ceiling says', async () => {
    const { store } = setup();
    for (const id of ['r1', 'r2', 'r3']) await store.put(A, id, stored('x'), 2);
    expect(await store.get(A, 'r1')).toBeUndefined();
    expect(await store.get(A, 'r3')).toBeDefined();
    await store.put(A, 'r4', stored('x'), 0);
    expect(await store.get(A, 'r4')).toBeUndefined();
  });

  it('takes what all together hold too much from the tenants that hold the most', async () => {
    const { store } = setup();
    await store.put(B, 'r1', stored('small'), MOST);
    for (let tenant = 0; tenant < 4; tenant += 1)
      for (const id of ['r1', 'r2', 'r3'])
        await store.put({ namespace: `attacker-${tenant}`, keyId: `k${tenant}` }, id, stored('x'.repeat(50)), MOST);
    expect(await store.get(B, 'r1')).toEqual(stored('small'));
    // Room is kept for each, not for the last alone.
    for (let tenant = 0; tenant < 4; tenant += 1)
      expect(await store.get({ namespace: `attacker-${tenant}`, keyId: `k${tenant}` }, 'r3')).toBeDefined();
  });

  it('does not store an answer beyond the bound of the tenant', async () => {
    const { store } = setup();
    await store.put(A, 'small', stored('one'), MOST);
    await store.put(A, 'big', stored('x'.repeat(700)), MOST);
    expect(await store.get(A, 'big')).toBeUndefined();
    expect(await store.get(A, 'small')).toBeDefined();
  });

  it('finds items by their id', async () => {
    const { store } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    await store.put(A, 'r2', stored('two'), MOST);
    const found = await store.findItems(A, ['item-two', 'item-three']);
    expect([...found.keys()]).toEqual(['item-two']);
    expect((await store.findItems(B, ['item-two'])).size).toBe(0);
  });

  it('finds many items of one id in linear time', async () => {
    const store = new MemoryStore(fakeClock());
    const items = Array.from({ length: 100_000 }, () => ({ kind: 'text' as const, text: 'x', id: 'a' }));
    await store.put(A, 'r1', { items, response: {} }, MOST);
    let found: Awaited<ReturnType<typeof store.findItems>> | undefined;
    expect(await cpuTime(async () => (found = await store.findItems(A, ['a'])))).toBeLessThan(3000);
    expect(found?.get('a')).toHaveLength(100_000);
  });

  it('drops many answers in linear time', async () => {
    const store = new MemoryStore(fakeClock(), { ttlMs: 1, maxSizePerTenant: 2 ** 24, maxSize: 2 ** 25 });
    for (let id = 0; id < 300_000; id++) await store.put(A, `r${id}`, { items: [], response: {} }, MOST);
    const large = { items: [], response: 'x'.repeat(2 ** 24 - 100) };
    expect(await cpuTime(() => store.put(A, 'large', large, MOST))).toBeLessThan(3000);
    expect(await store.get(A, 'r299990')).toBeUndefined();
    expect(await store.get(A, 'large')).toEqual(large);
  });
});

describe('readHistory', () => {
  it('joins the chain, oldest first', async () => {
    const { store } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    await store.put(A, 'r2', stored('two', 'r1'), MOST);
    const items = await readHistory(store, A, 'r2');
    expect(items.map(({ id }) => id)).toEqual(['item-one', 'item-two']);
  });

  it('refuses a chain with a missing answer, and one that is a circle', async () => {
    const { store } = setup();
    await store.put(A, 'r2', stored('two', 'gone'), MOST);
    await expect(readHistory(store, A, 'r2')).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    });
    await store.put(A, 'loop', stored('loop', 'loop'), MOST);
    const get = vi.spyOn(store, 'get');
    await expect(readHistory(store, A, 'loop')).rejects.toMatchObject({ status: 400 });
    expect(get).toHaveBeenCalledTimes(1);
  });
});
