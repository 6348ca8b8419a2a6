import { describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import { listInputItems, readHistory, readReferences } from '../../../src/gateway/state/history.ts';
import { readItems, writeItems } from '../../../src/gateway/state/item-lines.ts';
import { SharedStore } from '../../../src/gateway/state/shared-store.ts';
import { MemoryStore, type NewResponse } from '../../../src/gateway/state/response-store.ts';
import { cpuTime } from '../../support/cpu-time.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { heapUsed } from '../../support/heap.ts';

function stored(text: string, previous?: string): NewResponse {
  const items = [
    { kind: 'message' as const, role: 'user' as const, parts: [{ type: 'text' as const, text }], id: `item-${text}` },
  ];
  return { model: 'tiny', inputs: 1, items, response: { text }, ...(previous !== undefined && { previous }) };
}

const A: Principal = { namespace: 'tenant-a', keyId: 'a', name: 'a', scopes: ['models'] };
const B: Principal = { ...A, namespace: 'tenant-b', keyId: 'b' };
const MOST = 1_000_000;
const EMPTY = { model: 'tiny', inputs: 0 };
const FREE = (): void => undefined;

async function textOf(store: MemoryStore, id: string, owner = A): Promise<unknown> {
  const part = await store.get(owner, id, 'response');
  return part && JSON.parse(part.text);
}

function setup(bounds = { ttlMs: 1000, maxSizePerTenant: 1500, maxSize: 4000 }) {
  const clock = fakeClock();
  return { clock, store: new MemoryStore(clock, bounds) };
}

describe('memory store of responses', () => {
  it('returns an answer to the key that stored it, and to no other', async () => {
    const { store } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    expect(await textOf(store, 'r1')).toEqual({ text: 'one' });
    const { text, ...head } = (await store.get(A, 'r1', 'items')) ?? { text: '' };
    expect([head, readItems(text)]).toEqual([{ model: 'tiny', inputs: 1 }, stored('one').items]);
    expect(await store.get(B, 'r1', 'response')).toBeUndefined();
    expect(await store.delete(B, 'r1')).toBe(false);
    expect(await store.delete(A, 'r1')).toBe(true);
    expect(await store.get(A, 'r1', 'response')).toBeUndefined();
  });

  it('forgets after the time to live', async () => {
    const { store, clock } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    clock.stall(1000);
    expect(await store.get(A, 'r1', 'response')).toBeUndefined();
  });

  it('keeps the answers of the keys of one tenant apart', async () => {
    const { store } = setup();
    const other = { ...A, keyId: 'a2' };
    await store.put(A, 'r1', stored('one'), MOST);
    expect(await store.get(other, 'r1', 'response')).toBeUndefined();
    expect(await store.delete(other, 'r1')).toBe(false);
    expect((await store.findAnswers(other, ['item-one'])).size).toBe(0);
    expect((await store.findAnswers(A, ['item-one'])).size).toBe(1);
  });

  it('drops the least recently used answers of a tenant, over all its keys', async () => {
    const { store } = setup({ ttlMs: 1000, maxSizePerTenant: 1700, maxSize: 9000 });
    const other = { ...A, keyId: 'a2' };
    for (const id of ['r1', 'r2', 'r3']) await store.put(A, id, stored('x'.repeat(50)), MOST);
    await store.get(A, 'r1', 'response');
    for (const id of ['r4']) await store.put(other, id, stored('x'.repeat(50)), MOST);
    expect(await store.get(A, 'r2', 'response')).toBeUndefined();
    expect(await store.get(A, 'r1', 'response')).toBeDefined();
    expect(await store.get(other, 'r4', 'response')).toBeDefined();
  });

  it('keeps as many answers of a tenant as its ceiling says', async () => {
    const { store } = setup();
    for (const id of ['r1', 'r2', 'r3']) await store.put(A, id, stored('x'), 2);
    expect(await store.get(A, 'r1', 'response')).toBeUndefined();
    expect(await store.get(A, 'r3', 'response')).toBeDefined();
    await store.put(A, 'r4', stored('x'), 0);
    expect(await store.get(A, 'r4', 'response')).toBeUndefined();
  });

  it('takes what all together hold too much from the tenants that hold the most', async () => {
    const { store } = setup();
    await store.put(B, 'r1', stored('small'), MOST);
    for (let tenant = 0; tenant < 4; tenant += 1)
      for (const id of ['r1', 'r2', 'r3'])
        await store.put({ namespace: `attacker-${tenant}`, keyId: `k${tenant}` }, id, stored('x'.repeat(50)), MOST);
    expect(await textOf(store, 'r1', B)).toEqual({ text: 'small' });
    // Room is kept for each, not for the last alone.
    for (let tenant = 0; tenant < 4; tenant += 1)
      expect(await store.get({ namespace: `attacker-${tenant}`, keyId: `k${tenant}` }, 'r3', 'response')).toBeDefined();
  });

  it('does not store an answer beyond the bound of the tenant', async () => {
    const { store } = setup();
    await store.put(A, 'small', stored('one'), MOST);
    await store.put(A, 'big', stored('x'.repeat(1000)), MOST);
    expect(await store.get(A, 'big', 'response')).toBeUndefined();
    expect(await store.get(A, 'small', 'response')).toBeDefined();
  });

  it('finds items by their id', async () => {
    const { store } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    await store.put(A, 'r2', stored('two'), MOST);
    const found = await readReferences(store, A, ['item-two', 'item-three'], FREE);
    expect([...found]).toEqual([['item-two', stored('two').items]]);
    expect((await readReferences(store, B, ['item-two'], FREE)).size).toBe(0);
  });

  it('finds many items of one id in linear time', async () => {
    const store = new MemoryStore(fakeClock());
    const items = Array.from({ length: 100_000 }, () => ({ kind: 'text' as const, text: 'x', id: 'a' }));
    await store.put(A, 'r1', { ...EMPTY, items, response: {} }, MOST);
    let found: Awaited<ReturnType<typeof readReferences>> | undefined;
    expect(await cpuTime(async () => (found = await readReferences(store, A, ['a'], FREE)))).toBeLessThan(3000);
    expect(found?.get('a')).toHaveLength(100_000);
  });

  const ids = (length: number, prefix: string) => Array.from({ length }, (_, index) => `${prefix}${index}`);
  const withItems = (items: readonly string[]) => items.map((id) => ({ kind: 'text' as const, text: '', id }));

  it.each([
    ['answers with next to nothing', (at: number) => ({ id: `r${at}`, items: [] })],
    ['long ids', (at: number) => ({ id: `${'r'.repeat(10_000)}${at}`, items: [] })],
    ['items with next to nothing', (at: number) => ({ id: `r${at}`, items: withItems(ids(100, `i${at}-`)) })],
    ['items with long ids', (at: number) => ({ id: `r${at}`, items: withItems(ids(10, `${'i'.repeat(500)}${at}-`)) })],
  ])('counts all that an answer takes: %s', async (_what, make) => {
    const most = 2 ** 20;
    const store = new MemoryStore(fakeClock(), { ttlMs: 1000, maxSizePerTenant: most, maxSize: 2 * most });
    const before = heapUsed();
    for (let at = 0; at < 10_000; at += 1) {
      const { id, items } = make(at);
      await store.put(A, id, { ...EMPTY, items, response: {} }, MOST);
    }
    // A code unit takes two bytes at most. A map that had many entries is larger than those that it has.
    expect(heapUsed() - before).toBeLessThan(2.5 * most);
    const { id } = make(9999);
    expect(await store.get(A, id, 'response')).toBeDefined();
  });

  it('drops many answers in linear time', async () => {
    const most = 2 ** 25;
    const store = new MemoryStore(fakeClock(), { ttlMs: 1, maxSizePerTenant: most, maxSize: 2 * most });
    // It holds 144,000 of them. To fill it further is slow, because each answer more finds the first one again.
    for (let id = 0; id < 230_000; id++) await store.put(A, `r${id}`, { ...EMPTY, items: [], response: {} }, MOST);
    const large = { ...EMPTY, items: [], response: 'x'.repeat(most - 400) };
    expect(await cpuTime(() => store.put(A, 'large', large, MOST))).toBeLessThan(3000);
    expect(await store.get(A, 'r229990', 'response')).toBeUndefined();
    expect(await textOf(store, 'large')).toBe(large.response);
  });
});

describe('readHistory', () => {
  it('joins the chain, oldest first', async () => {
    const { store } = setup();
    await store.put(A, 'r1', stored('one'), MOST);
    await store.put(A, 'r2', stored('two', 'r1'), MOST);
    const items = await readHistory(store, A, 'r2', FREE);
    expect(items.map(({ id }) => id)).toEqual(['item-one', 'item-two']);
  });

  it('refuses a chain with a missing answer, and one that is a circle', async () => {
    const { store } = setup();
    await store.put(A, 'r2', stored('two', 'gone'), MOST);
    await expect(readHistory(store, A, 'r2', FREE)).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    });
    await store.put(A, 'loop', stored('loop', 'loop'), MOST);
    const get = vi.spyOn(store, 'get');
    await expect(readHistory(store, A, 'loop', FREE)).rejects.toMatchObject({ status: 400 });
    expect(get).toHaveBeenCalledTimes(1);
  });
});

describe('items as lines', () => {
  it('keep every character, and none is taken for the id of another', () => {
    const items = [
      { kind: 'text' as const, text: 'a\nb\u2028c"\\', id: 'x"\\' },
      { kind: 'text' as const, text: '\n{"id":"y","kind":"text"}', id: 'z' },
    ];
    const lines = writeItems(items);
    expect(readItems(lines)).toEqual(items);
    expect(lines.split('\n')).toHaveLength(2);
    const after = (id: string) => () => listInputItems('r', { ...EMPTY, inputs: 2, text: lines }, { after: id });
    expect(after('y')).toThrow(/id of an item/);
    expect(after('x"\\')()).toMatchObject({ data: [] });
    expect(after('z')()).toMatchObject({ data: [{ id: 'x"\\' }] });
    expect(readItems(writeItems([]))).toEqual([]);
  });

  it('list a page of many without parsing the others', () => {
    const items = Array.from({ length: 1000 }, (_, index) => ({
      kind: 'text' as const,
      text: `${index}`,
      id: `i${index}`,
    }));
    const stored = { ...EMPTY, inputs: 999, text: writeItems(items) };
    const parse = vi.spyOn(JSON, 'parse');
    const queries: Record<string, string>[] = [
      {},
      { after: 'i500' },
      { order: 'asc' },
      { order: 'asc', after: 'i500' },
    ];
    for (const query of queries) {
      const list = listInputItems('r', stored, { limit: '2', ...query }) as { data: { id: string }[] };
      expect(list.data).toHaveLength(2);
    }
    const parsed = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
    parse.mockRestore();
    expect(parsed).toBeLessThan(1000);
  });
});

describe('the share of a tenant in a store', () => {
  it('bounds what it reads in a second, and leaves the readings of others alone', async () => {
    const clock = fakeClock();
    const memory = new MemoryStore(clock);
    const store = new SharedStore(memory, clock);
    const large = { ...EMPTY, items: [], response: 'x'.repeat(4 * 2 ** 20) };
    await store.put(A, 'r1', large, MOST);
    await store.put(B, 'r1', stored('one'), MOST);
    const reads = vi.spyOn(memory, 'get');
    const all = Promise.all(Array.from({ length: 100 }, () => store.get(A, 'r1', 'response')));
    expect((await store.get(B, 'r1', 'response'))?.text).toBe('{"text":"one"}');
    await clock.advance(1000);
    expect(reads.mock.calls.length).toBeLessThan(12);
    await clock.advance(60_000);
    expect((await all).every((one) => one !== undefined)).toBe(true);
  });

  it('reads on after a reading that failed', async () => {
    const memory = new MemoryStore(fakeClock());
    vi.spyOn(memory, 'get').mockRejectedValueOnce(new Error('away'));
    const store = new SharedStore(memory, fakeClock());
    await expect(store.get(A, 'r1', 'items')).rejects.toThrow('away');
    expect(await store.get(A, 'r1', 'items')).toBeUndefined();
  });
});
