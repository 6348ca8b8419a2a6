import { describe, expect, it, vi } from 'vitest';
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

function setup(bounds = { ttlMs: 1000, maxSizePerKey: 600, maxSize: 1500 }) {
  const clock = fakeClock();
  return { clock, store: new MemoryStore(clock, bounds) };
}

describe('memory store of responses', () => {
  it('returns an answer to the key that stored it, and to no other', async () => {
    const { store } = setup();
    await store.put('a', 'r1', stored('one'));
    expect(await store.get('a', 'r1')).toEqual(stored('one'));
    expect(await store.get('b', 'r1')).toBeUndefined();
    expect(await store.delete('b', 'r1')).toBe(false);
    expect(await store.delete('a', 'r1')).toBe(true);
    expect(await store.get('a', 'r1')).toBeUndefined();
  });

  it('forgets after the time to live', async () => {
    const { store, clock } = setup();
    await store.put('a', 'r1', stored('one'));
    clock.stall(1000);
    expect(await store.get('a', 'r1')).toBeUndefined();
  });

  it('drops the least recently used answers, first within the key, then over all', async () => {
    const { store } = setup();
    for (const id of ['r1', 'r2', 'r3']) await store.put('a', id, stored('x'.repeat(50)));
    await store.get('a', 'r1');
    for (const id of ['r4', 'r5']) await store.put('a', id, stored('x'.repeat(50)));
    expect(await store.get('a', 'r2')).toBeUndefined();
    expect(await store.get('a', 'r5')).toBeDefined();
    for (const key of ['b', 'c', 'd'])
      for (const id of ['r1', 'r2', 'r3']) await store.put(key, id, stored('x'.repeat(50)));
    expect(await store.get('a', 'r5')).toBeUndefined();
    expect(await store.get('d', 'r3')).toBeDefined();
  });

  it('does not store an answer beyond the bound of the key', async () => {
    const { store } = setup();
    await store.put('a', 'small', stored('one'));
    await store.put('a', 'big', stored('x'.repeat(700)));
    expect(await store.get('a', 'big')).toBeUndefined();
    expect(await store.get('a', 'small')).toBeDefined();
  });

  it('finds items by their id', async () => {
    const { store } = setup();
    await store.put('a', 'r1', stored('one'));
    await store.put('a', 'r2', stored('two'));
    const found = await store.findItems('a', ['item-two', 'item-three']);
    expect([...found.keys()]).toEqual(['item-two']);
    expect((await store.findItems('b', ['item-two'])).size).toBe(0);
  });

  it('finds many items of one id in linear time', async () => {
    const store = new MemoryStore(fakeClock());
    const items = Array.from({ length: 100_000 }, () => ({ kind: 'text' as const, text: 'x', id: 'a' }));
    await store.put('a', 'r1', { items, response: {} });
    let found: Awaited<ReturnType<typeof store.findItems>> | undefined;
    expect(await cpuTime(async () => (found = await store.findItems('a', ['a'])))).toBeLessThan(3000);
    expect(found?.get('a')).toHaveLength(100_000);
  });

  it('drops many answers in linear time', async () => {
    const store = new MemoryStore(fakeClock(), { ttlMs: 1, maxSizePerKey: 2 ** 24, maxSize: 2 ** 25 });
    for (let id = 0; id < 300_000; id++) await store.put('a', `r${id}`, { items: [], response: {} });
    const large = { items: [], response: 'x'.repeat(2 ** 24 - 100) };
    expect(await cpuTime(() => store.put('a', 'large', large))).toBeLessThan(3000);
    expect(await store.get('a', 'r299990')).toBeUndefined();
    expect(await store.get('a', 'large')).toEqual(large);
  });
});

describe('readHistory', () => {
  it('joins the chain, oldest first', async () => {
    const { store } = setup();
    await store.put('a', 'r1', stored('one'));
    await store.put('a', 'r2', stored('two', 'r1'));
    const items = await readHistory(store, 'a', 'r2');
    expect(items.map(({ id }) => id)).toEqual(['item-one', 'item-two']);
  });

  it('refuses a chain with a missing answer, and one that is a circle', async () => {
    const { store } = setup();
    await store.put('a', 'r2', stored('two', 'gone'));
    await expect(readHistory(store, 'a', 'r2')).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    });
    await store.put('a', 'loop', stored('loop', 'loop'));
    const get = vi.spyOn(store, 'get');
    await expect(readHistory(store, 'a', 'loop')).rejects.toMatchObject({ status: 400 });
    expect(get).toHaveBeenCalledTimes(1);
  });
});
