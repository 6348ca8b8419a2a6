import { Redis } from 'iovalkey';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Counters, Holding, SharedHoldings } from '../../../src/runtime/counter.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { sharedCounters } from '../../../src/runtime/shared-counter.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { readReferences } from '../../../src/gateway/state/history.ts';
import { readItems } from '../../../src/gateway/state/item-lines.ts';
import type { NewResponse, ResponseStore } from '../../../src/gateway/state/response-store.ts';
import { ValkeyStore } from '../../../src/gateway/state/valkey-store.ts';
import { describeWith } from '../../support/needs.ts';
import { CALLER, post, quiet, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { startEngine, type ScriptedEngine } from '../../support/scripted-engine.ts';
import { startValkey, type ValkeyServer } from '../../support/valkey/server.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Two keys of one tenant, and one of another. */
const A = { namespace: 'tenant-a', keyId: 'a' };
const B = { namespace: 'tenant-a', keyId: 'b' };
const C = { namespace: 'tenant-c', keyId: 'c' };
const MOST = 100;

let valkey: ValkeyServer;
let admin: Redis;

beforeAll(async () => {
  valkey = await startValkey();
  admin = new Redis(valkey.url.replace('valkey', 'redis'));
  // One test takes the server away for a while.
  admin.on('error', () => undefined);
}, 600_000);
afterAll(async () => {
  admin.disconnect();
  await valkey.kill();
});
beforeEach(async () => {
  await admin.flushall();
});

async function reachable(store: ResponseStore): Promise<void> {
  await waitFor('Valkey to be reached', () =>
    store.get(A, 'none', 'response').then(
      () => true,
      () => false,
    ),
  );
}

function stored(text: string, itemId = `item-${text}`): NewResponse {
  return { model: 'tiny', inputs: 0, items: [{ kind: 'text', text, id: itemId }], response: { text } };
}

describeWith('Python venv')('the store in Valkey', () => {
  const bounds = { ttlMs: 3_600_000, maxSizePerTenant: 3000, maxSize: 0 };
  let store: ValkeyStore;

  beforeAll(async () => {
    store = new ValkeyStore(valkey.url, quiet, bounds);
    await reachable(store);
  });
  afterAll(() => store.close());

  it('gives back to the key that stored, and to no other', async () => {
    await store.put(A, 'r1', stored('ünï'), MOST);
    const head = { model: 'tiny', inputs: 0 };
    expect(await store.get(A, 'r1', 'response')).toEqual({ ...head, text: '{"text":"ünï"}' });
    const { text, ...rest } = (await store.get(A, 'r1', 'items')) ?? { text: '' };
    expect([rest, readItems(text)]).toEqual([head, stored('ünï').items]);
    expect(await store.get(B, 'r1', 'response')).toBeUndefined();
    expect(await store.delete(B, 'r1')).toBe(false);
    expect(await store.delete(A, 'r1')).toBe(true);
    expect(await store.get(A, 'r1', 'response')).toBeUndefined();
    expect(await store.delete(A, 'r1')).toBe(false);
  });

  it('finds items by their id, of the answer that had them last', async () => {
    await store.put(A, 'r1', stored('one', 'msg_1'), MOST);
    await store.put(A, 'r2', stored('two', 'msg_1'), MOST);
    await store.put(A, 'r3', stored('three', 'msg_3'), MOST);
    const principal = { ...A, name: 'a', scopes: [] };
    const found = await readReferences(store, principal, ['msg_3', 'msg_1', 'unknown'], () => undefined);
    expect([...found.values()]).toEqual([stored('three', 'msg_3').items, stored('two', 'msg_1').items]);
    await store.delete(A, 'r1');
    expect((await store.findAnswers(A, ['msg_1'])).size).toBe(1);
    await store.delete(A, 'r2');
    expect((await store.findAnswers(A, ['msg_1'])).size).toBe(0);
    expect((await store.findAnswers(B, ['msg_3'])).size).toBe(0);
  });

  it('drops what was not used for longest when the tenant is full, and leaves other tenants alone', async () => {
    await store.put(C, 'r1', stored('c'), MOST);
    for (const id of ['r1', 'r2', 'r3']) await store.put(A, id, stored(`${id}${'x'.repeat(60)}`), MOST);
    await store.get(A, 'r1', 'response');
    // Another key of the same tenant.
    await store.put(B, 'r4', stored(`r4${'x'.repeat(60)}`), MOST);
    const left = await Promise.all(['r1', 'r2', 'r3'].map((id) => store.get(A, id, 'response')));
    expect(left.map((one) => one !== undefined)).toEqual([true, false, true]);
    expect(await store.get(B, 'r4', 'response')).toBeDefined();
    expect(await store.get(C, 'r1', 'response')).toBeDefined();
    const size = Number(await admin.hget('berth:responses-of:{tenant-a}', 'size'));
    expect(size).toBeGreaterThan(1300);
    expect(size).toBeLessThanOrEqual(3000);
  });

  it('keeps as many answers of a tenant as its ceiling says', async () => {
    await store.put(C, 'r1', stored('c'), 2);
    await store.put(A, 'r1', stored('one'), 2);
    await store.put(B, 'r2', stored('two'), 2);
    await store.put(A, 'r3', stored('three'), 2);
    expect(await store.get(A, 'r1', 'response')).toBeUndefined();
    expect(await store.get(B, 'r2', 'response')).toBeDefined();
    expect(await store.get(A, 'r3', 'response')).toBeDefined();
    expect(await store.get(C, 'r1', 'response')).toBeDefined();
    await store.put(A, 'r4', stored('four'), 0);
    expect(await store.get(A, 'r4', 'response')).toBeUndefined();
  });

  it('does not keep what is larger than a tenant may hold', async () => {
    await store.put(A, 'small', stored('one'), MOST);
    await store.put(A, 'big', stored('x'.repeat(2000)), MOST);
    expect(await store.get(A, 'big', 'response')).toBeUndefined();
    expect(await store.get(A, 'small', 'response')).toBeDefined();
  });

  it('counts the names of items, of which engines decide how many there are', async () => {
    const items = Array.from({ length: 20 }, (_, index) => ({ kind: 'text' as const, text: '', id: `i${index}` }));
    await store.put(A, 'many', { ...stored('one'), items }, MOST);
    expect(await store.get(A, 'many', 'response')).toBeUndefined();
    await store.put(A, 'few', { ...stored('one'), items: items.slice(0, 3) }, MOST);
    const sizes = await admin.hmget('berth:responses-of:{tenant-a}', 'size', 's:a/few');
    expect(sizes[0]).toBe(sizes[1]);
    await store.delete(A, 'few');
    expect(await admin.hget('berth:responses-of:{tenant-a}', 'size')).toBe('0');
  });

  it('forgets after the time to live, one by one and all together', async () => {
    const brief = new ValkeyStore(valkey.url, quiet, { ...bounds, ttlMs: 300 });
    await reachable(brief);
    await brief.put(A, 'r1', stored('one'), MOST);
    expect(await brief.get(A, 'r1', 'response')).toBeDefined();
    await store.put(A, 'r2', stored('two'), MOST);
    await waitFor('r1 to expire', async () => (await brief.get(A, 'r1', 'response')) === undefined);
    expect(await brief.get(A, 'r2', 'response')).toBeDefined();
    expect(await brief.findAnswers(A, ['item-one'])).toEqual(new Map());
    await brief.put(C, 'r1', stored('one'), MOST);
    await waitFor('the tenant to leave', async () => (await admin.keys('berth:responses-of:{tenant-c}*')).length === 0);
    brief.close();
  });

  it('begins anew when the server has evicted half of what it knew', async () => {
    await store.put(A, 'r1', stored('one'), MOST);
    await admin.del('berth:responses-of:{tenant-a}:used');
    await store.put(A, 'r2', stored('two'), MOST);
    expect(await store.get(A, 'r1', 'response')).toBeUndefined();
    expect(await store.get(A, 'r2', 'response')).toBeDefined();
  });
});

describeWith('Python venv')('replicas that count in Valkey', () => {
  let counters: Counters[];
  let holdings: SharedHoldings[];

  beforeAll(async () => {
    // However busy this machine is, Valkey is not taken for slow: each replica would count for itself.
    const clock = { ...systemClock(), monotonic: () => 0 };
    counters = [1, 2].map(() => sharedCounters(valkey.url, quiet, clock));
    holdings = counters.flatMap(({ holdings: shared }) => shared ?? []);
    for (const [index, shared] of holdings.entries())
      await waitFor('Valkey to be reached', () =>
        note(shared, `reach-${index}`, {}).then(
          () => true,
          () => false,
        ),
      );
  });
  afterAll(() => {
    for (const one of counters) one.close();
  });

  function note(shared: SharedHoldings | undefined, name: string, some: Partial<Holding>) {
    const holding = { held: 0n, more: 0n, counted: 0n, max: 100n, isFirst: false, ...some };
    return shared?.note(name, holding) ?? Promise.reject(new Error('nothing is shared'));
  }

  it('hold together what fits, of the newest count that any of them knows', async () => {
    const [first, second] = holdings;
    expect(await note(first, 'a', { more: 60n })).toEqual({ fits: true, others: 0n });
    expect(await note(second, 'a', { more: 41n })).toEqual({ fits: false, others: 60n });
    expect(await note(second, 'a', { more: 40n })).toEqual({ fits: true, others: 60n });
    expect(await note(second, 'a', { held: 40n, more: 1n })).toMatchObject({ fits: false });
    // The first one has seen its sixty counted, and the second not yet.
    expect(await note(first, 'a', { counted: 60n })).toEqual({ fits: true, others: 40n });
    expect(await note(second, 'a', { held: 40n, more: 1n })).toEqual({ fits: false, others: 0n });
    expect(await note(second, 'a', { held: 0n, more: 1n, isFirst: true })).toMatchObject({ fits: true });
    expect(await note(first, 'b', { more: 500n, isFirst: true })).toMatchObject({ fits: true });
    expect(await note(second, 'b', { more: 1n, isFirst: true })).toEqual({ fits: false, others: 500n });
    expect(await note(first, 'c', { counted: -50n, more: 150n })).toMatchObject({ fits: true });
    expect(await admin.pttl('berth:held:a')).toBeGreaterThan(20_000);
  });

  it('count a call that the limit of its key refuses for the key only', async () => {
    const [counter, other] = counters.map((one) => one.counter('test'));
    const first = { key: 'key', most: 2 };
    for (const total of [1, 2])
      expect(await counter?.addBoth(first, 'tenant', 1)).toMatchObject([{ total }, { total }]);
    expect(await other?.addBoth(first, 'tenant', 1)).toEqual([{ total: 3, resetMs: expect.any(Number) as number }]);
    expect(await other?.add('tenant', 1)).toMatchObject({ total: 3 });
  });

  it('go over a budget by one call together, whatever is counted', async () => {
    const engine = await startEngine({ contextLength: 2000 });
    engine.behave({ kind: 'answer', reply: { text: 'Hi', inputTokens: 1000, outputTokens: 1000 }, delayMs: 20 });
    const budget = { costs: [{ currency: 'USD', max: '1.00' }] };
    const ceilings = () => ({ ...DEFAULT_CEILINGS, budget, policies: [] });
    const gateways = await Promise.all(
      holdings.map((shared) => startGateway(undefined, { holdings: shared, ceilings, clock: scaledClock(60) })),
    );
    const price = '500.00';
    const annotations = {
      'berth.dev/price-input': price,
      'berth.dev/price-output': price,
      'berth.dev/price-currency': 'USD',
    };
    for (const gateway of gateways) {
      gateway.cluster.serve({ name: 'llm', annotations, ports: [engine.port] });
      await gateway.ready('tiny');
    }
    const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] };
    const calls = gateways.flatMap((gateway) =>
      Array.from({ length: 5 }, async () => (await post(gateway, 'chat/completions', body)).status),
    );
    const statuses = await Promise.all(calls);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 429)).toHaveLength(9);
    for (const gateway of gateways) await gateway.close();
    await engine.close();
  });
});

interface Answer {
  id: string;
  output: unknown;
}

describeWith('Python venv')('two replicas of the gateway', () => {
  let engine: ScriptedEngine;
  let stores: ValkeyStore[];
  let first: TestGateway;
  let second: TestGateway;

  beforeAll(async () => {
    engine = await startEngine({ engine: 'tgi' });
    stores = [1, 2].map(() => new ValkeyStore(valkey.url, quiet));
    const gateways = stores.map((store) => startGateway(undefined, { store }));
    [first, second] = (await Promise.all(gateways)) as [TestGateway, TestGateway];
    for (const gateway of [first, second]) {
      gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
      await gateway.ready('tiny');
    }
    for (const store of stores) await reachable(store);
  });
  afterAll(async () => {
    for (const gateway of [first, second]) await gateway.close();
    for (const store of stores) store.close();
    await engine.close();
  });
  beforeEach(() => {
    engine.received.length = 0;
    second.callAs(CALLER);
  });

  async function create(gateway: TestGateway, body: object): Promise<Answer> {
    const response = await post(gateway, 'responses', { model: 'tiny', ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  }

  it('continue in turns what the other answered, streamed or not', async () => {
    const { id } = await create(first, { input: 'My name is Ada.' });
    const streamed = await post(second, 'responses', {
      model: 'tiny',
      input: 'And I like ships.',
      stream: true,
      previous_response_id: id,
    });
    const next = /"id":"(resp_[^"]+)"/.exec(await streamed.text())?.[1];
    await create(first, { input: 'What is my name?', previous_response_id: next });
    const sent = JSON.stringify(engine.received[2]?.body);
    expect(sent).toMatch(/My name is Ada.*Hello there.*And I like ships.*Hello there.*What is my name/);
  });

  it('know each other items by reference, and what the other deleted', async () => {
    const { id, output } = await create(first, { input: 'Keep it' });
    const [item] = output as { id: string }[];
    const input = [
      { type: 'item_reference', id: item?.id },
      { role: 'user', content: 'Go on' },
    ];
    await create(second, { input });
    expect(JSON.stringify(engine.received[1]?.body)).toContain('Hello there');
    expect(await (await fetch(`${second.base}/v1/responses/${id}`)).json()).toMatchObject({ id, output });
    expect((await fetch(`${second.base}/v1/responses/${id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await fetch(`${first.base}/v1/responses/${id}`)).status).toBe(404);
  });

  it('show an answer to no other key, of the same tenant or another', async () => {
    const { id } = await create(first, { input: 'Secret' });
    for (const other of [
      { ...CALLER, keyId: 'key-2' },
      { ...CALLER, keyId: 'key-3', namespace: 'tenant-b' },
    ]) {
      second.callAs(other);
      expect((await fetch(`${second.base}/v1/responses/${id}`)).status).toBe(404);
      const stolen = await post(second, 'responses', { model: 'tiny', input: 'x', previous_response_id: id });
      expect(await stolen.json()).toMatchObject({ error: { code: 'previous_response_not_found' } });
    }
    expect(JSON.stringify(engine.received.slice(1))).not.toContain('Secret');
  });

  it('answer on while Valkey is away, and say that a conversation cannot be continued just now', async () => {
    const { id } = await create(first, { input: 'Before' });
    await valkey.kill();
    await create(first, { input: 'Meanwhile' });
    const response = await post(second, 'responses', { model: 'tiny', input: 'x', previous_response_id: id });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({ error: { type: 'server_error' } });
    expect((await fetch(`${second.base}/v1/responses/${id}`)).status).toBe(503);
    valkey = await startValkey(valkey.port);
    for (const store of stores) await reachable(store);
    const after = await create(first, { input: 'After' });
    await create(second, { input: 'x', previous_response_id: after.id });
  });
});
