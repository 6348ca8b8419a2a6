import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BilledCall } from '../../../src/gateway/billing/token-page.ts';
import type { Usage } from '../../../src/gateway/dialects/index.ts';
import { type Grouping, totalsOf, UsageReport } from '../../../src/ledger/report.ts';
import { tokenBillsOf } from '../../../src/ledger/tokens.ts';
import { parseMoney } from '../../../src/resources/money.ts';
import { INTRUDER, type LoggedCall, TokenWorld, type WriteFate } from '../../support/token-world.ts';

const RUNS = 600;
const DAY = 86_400_000;
const RANGE = { from: Date.UTC(2025, 0, 1), to: Date.UTC(2028, 0, 1) };

const usage: fc.Arbitrary<Usage | undefined> = fc.option(
  fc
    .record({ inputTokens: fc.nat(200_000), outputTokens: fc.nat(50_000), cached: fc.nat(100) })
    .map(({ cached, ...counts }) => ({
      ...counts,
      cachedTokens: Math.floor((counts.inputTokens * cached) / 100),
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    })),
  { nil: undefined, freq: 8 },
);
const call: fc.Arbitrary<BilledCall> = fc
  .record({
    namespace: fc.constantFrom('tenant-a', 'tenant-b'),
    by: fc.constantFrom('key/ci', 'key/notebooks', 'person/ann'),
    model: fc.constantFrom('qwen', 'llama'),
    prices: fc.record({
      input: fc.constantFrom('0.20', '0.000001', '3.333333'),
      cachedInput: fc.constantFrom('0.05', '0'),
      output: fc.constantFrom('0.60', '7.77'),
      currency: fc.constantFrom('USD', 'USD', 'EUR'),
    }),
  })
  .map((one) => ({ ...one, tenant: one.namespace }));

type Op =
  | { do: 'call'; replica: number; call: BilledCall; usage: Usage | undefined }
  | { do: 'wait' | 'jump'; ms: number }
  | { do: 'fates'; fates: WriteFate[] }
  | { do: 'kill' | 'stop'; replica: number }
  | { do: 'start' | 'deliver' | 'intrude' };

const replica = fc.nat(9);
const fates = fc.array(fc.constantFrom<WriteFate>('done', 'failed', 'doneAndFailed', 'slow', 'slow', 'late', 'late'), {
  maxLength: 6,
});
const op = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('call' as const), replica, call, usage }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 9000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('jump' as const), ms: fc.integer({ min: -DAY, max: DAY }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('fates' as const), fates }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('kill' as const, 'stop' as const), replica }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('start' as const, 'deliver' as const) }) },
) as fc.Arbitrary<Op>;

/** Lives a life, and returns the replicas that were left at its end as well. */
async function live(ops: readonly Op[]): Promise<{ world: TokenWorld; left: number[] }> {
  const world = new TokenWorld();
  for (const name of ['tenant-a', 'tenant-b']) world.namespaces.put({ metadata: { name } });
  world.start();
  world.start();
  const chosen = (index: number): number => {
    const { alive } = world;
    return alive[index % alive.length] ?? world.start();
  };
  for (const one of ops) {
    if (one.do === 'call') world.call(chosen(one.replica), one.call, one.usage);
    else if (one.do === 'wait') await world.clock.advance(one.ms);
    else if (one.do === 'jump') world.clock.jumpWall(one.ms);
    else if (one.do === 'fates') world.fates = [...one.fates];
    else if (one.do === 'kill') world.kill(chosen(one.replica));
    else if (one.do === 'stop') await world.stop(chosen(one.replica));
    else if (one.do === 'start') world.start();
    else if (one.do === 'intrude') world.intrude();
    else world.deliver();
  }
  // The API server is well again, if slow, and every replica that is left stops.
  world.fates = Array.from({ length: 10 }, () => 'slow');
  await world.clock.advance(1000);
  const left = world.alive;
  for (const index of left) await world.stop(index);
  world.deliver();
  return { world, left };
}

/** Half up. Written anew here: the code under test must not check itself. */
function priced({ prices }: Pick<BilledCall, 'prices'>, [input, cached, output]: [number, number, number]): bigint {
  const sum = [
    [input - cached, prices.input],
    [cached, prices.cachedInput],
    [output, prices.output],
  ].reduce((total, [count, price]) => total + BigInt(count ?? 0) * parseMoney(String(price)), 0n);
  return (2n * sum + 1_000_000n) / 2_000_000n;
}

/** Tokens by tenant, key, model, price and day, from the calls alone. */
function sumsOf(calls: readonly LoggedCall[]): Record<string, number[]> {
  const sums: Record<string, number[]> = {};
  for (const { namespace, by, model, prices, day, usage: used } of calls) {
    const id = JSON.stringify([
      namespace,
      by,
      model,
      prices.input,
      prices.cachedInput,
      prices.output,
      prices.currency,
      day,
    ]);
    const more = [1, used ? 0 : 1, used?.inputTokens ?? 0, used?.cachedTokens ?? 0, used?.outputTokens ?? 0];
    sums[id] = (sums[id] ?? more.map(() => 0)).map((count, index) => count + (more[index] ?? 0));
  }
  return sums;
}

function sumsOfRecords({ records }: TokenWorld): Record<string, number[]> {
  const sums: Record<string, number[]> = {};
  for (const { metadata, spec } of records.values()) {
    for (const one of spec.entries.filter(({ by }) => by !== INTRUDER)) {
      const prices = [one.inputPrice, one.cachedInputPrice, one.outputPrice, spec.currency];
      const id = JSON.stringify([metadata.namespace, one.by, one.model, ...prices, spec.day]);
      const more = [one.calls, one.unreported, one.inputTokens, one.cachedInputTokens, one.outputTokens];
      sums[id] = (sums[id] ?? more.map(() => 0)).map((count, index) => count + (more[index] ?? 0));
    }
  }
  return sums;
}

function reported(world: TokenWorld, group: Grouping): Record<string, bigint> {
  const report = new UsageReport({ ...RANGE, group, most: 10_000 });
  for (const record of world.records.values()) for (const bill of tokenBillsOf(record)) report.addTokens(bill);
  return Object.fromEntries(totalsOf(report.lines()).map(({ currency, cost }) => [currency, cost]));
}

test(
  'whatever replicas and their writes suffer, the records have each call once that a write had, and lose none of a replica that stops well',
  { timeout: 120_000 },
  async () => {
    let seen = { refused: 0, lost: 0, stored: 0 };
    const worlds = fc.asyncProperty(fc.array(op, { minLength: 5, maxLength: 60, size: 'max' }), async (ops) => {
      const { world, left } = await live(ops);
      const stored = world.log.filter(({ isStored }) => isStored);
      expect(sumsOfRecords(world)).toEqual(sumsOf(stored));
      expect(world.log.filter(({ replica: by, isStored }) => left.includes(by) && !isStored)).toEqual([]);
      const money: Record<string, bigint> = {};
      for (const { spec } of world.records.values()) {
        for (const one of spec.entries) {
          const prices = { input: one.inputPrice, cachedInput: one.cachedInputPrice, output: one.outputPrice };
          const cost = priced({ prices: { ...prices, currency: spec.currency } }, [
            one.inputTokens,
            one.cachedInputTokens,
            one.outputTokens,
          ]);
          expect(parseMoney(one.cost)).toBe(cost);
          money[spec.currency] = (money[spec.currency] ?? 0n) + cost;
        }
        expect(parseMoney(spec.cost)).toBe(spec.entries.reduce((sum, { cost }) => sum + parseMoney(cost), 0n));
      }
      for (const group of ['day', 'instance', 'key', 'model'] as const) expect(reported(world, group)).toEqual(money);
      seen = {
        refused: seen.refused + world.refused,
        lost: seen.lost + world.log.length - stored.length,
        stored: seen.stored + stored.length,
      };
    });
    await fc.assert(worlds, { numRuns: RUNS });
    // Worlds that are too tame would show nothing.
    expect(Object.values(seen).every((count) => count >= RUNS / 100)).toBe(true);
  },
);

test(
  'an entry that somebody adds to its records keeps no replica from billing each call once',
  { timeout: 120_000 },
  async () => {
    const intruded = fc.oneof(
      { weight: 16, arbitrary: op.filter((one) => one.do !== 'kill' && one.do !== 'stop') },
      { weight: 3, arbitrary: fc.constant<Op>({ do: 'intrude' }) },
    );
    let refused = 0;
    const worlds = fc.asyncProperty(fc.array(intruded, { minLength: 20, maxLength: 60, size: 'max' }), async (ops) => {
      const { world } = await live(ops);
      expect(sumsOfRecords(world)).toEqual(sumsOf(world.log));
      refused += world.refused;
    });
    await fc.assert(worlds, { numRuns: RUNS / 6 });
    expect(refused).toBeGreaterThan(RUNS / 20);
  },
);

test('a record keeps the entry that somebody made larger, and another has what came after it', async () => {
  const world = new TokenWorld();
  const index = world.start();
  world.namespaces.put({ metadata: { name: 'tenant-a' } });
  const prices = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };
  const one = { namespace: 'tenant-a', tenant: 'tenant-a', by: 'key/ci', model: 'qwen', prices };
  const used = { inputTokens: 10, outputTokens: 10, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const callTwice = async (): Promise<void> => {
    for (const model of ['qwen', 'llama']) world.call(index, { ...one, model }, used);
    await world.clock.advance(10_000);
  };
  await callTwice();
  for (const { spec } of world.records.values())
    for (const entry of spec.entries) if (entry.model === 'qwen') Object.assign(entry, { calls: 100, inputTokens: 15 });
  await callTwice();
  expect(world.meterOf(index).lagSeconds).toBe(0);
  await callTwice();
  const entries = [...world.records.values()].map(({ spec }) =>
    spec.entries.map(({ model, calls, inputTokens, outputTokens }) => [model, calls, inputTokens, outputTokens]),
  );
  expect(entries).toEqual([
    [
      ['qwen', 100, 15, 10],
      ['llama', 1, 10, 10],
    ],
    [
      ['qwen', 1, 15, 20],
      ['llama', 2, 20, 20],
    ],
  ]);
});

test('a replica that dies loses the calls since its last write, and no others', async () => {
  const world = new TokenWorld();
  const index = world.start();
  world.namespaces.put({ metadata: { name: 'tenant-a' } });
  const prices = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };
  const one = { namespace: 'tenant-a', tenant: 'tenant-a', by: 'key/ci', model: 'qwen', prices };
  const used = { inputTokens: 1, outputTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  for (let second = 0; second < 62; second += 1) {
    world.call(index, one, used);
    await world.clock.advance(1000);
  }
  world.kill(index);
  await world.clock.advance(60_000);
  expect([...world.records.values()].map(({ spec }) => spec.calls)).toEqual([60]);
});

test('a namespace that is made anew under the name of another is billed for no call of that', async () => {
  const world = new TokenWorld();
  const index = world.start();
  const prices = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };
  const one = { namespace: 'tenant-a', by: 'key/ci', model: 'qwen', prices };
  const used = { inputTokens: 1, outputTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  world.namespaces.put({ metadata: { name: 'tenant-a', uid: 'first' } });
  world.call(index, { ...one, tenant: 'first', by: 'key/old' }, used);
  await world.clock.advance(10_000);
  expect(world.records.size).toBe(1);
  // Neither what was written, nor what waits for a write.
  world.call(index, { ...one, tenant: 'first', by: 'key/old' }, used);
  world.namespaces.remove('tenant-a');
  world.records.clear();
  world.namespaces.put({ metadata: { name: 'tenant-a', uid: 'second' } });
  world.call(index, { ...one, tenant: 'second', by: 'key/new' }, used);
  await world.clock.advance(10_000);
  const billed = [...world.records.values()].flatMap(({ spec }) => spec.entries.map(({ by, calls }) => [by, calls]));
  expect([billed, world.meterOf(index).unbilled.refused]).toEqual([[['key/new', 1]], 1]);
  expect(world.meterOf(index).lagSeconds).toBe(0);
});

test('a replica that stops while the API server is away for a moment loses no call of any tenant', async () => {
  const world = new TokenWorld();
  const index = world.start();
  const prices = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };
  const used = { inputTokens: 1, outputTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  await world.clock.advance(1000);
  for (let tenant = 0; tenant < 10; tenant += 1) {
    const name = `tenant-${tenant}`;
    world.namespaces.put({ metadata: { name } });
    world.call(index, { namespace: name, tenant: name, by: 'key/ci', model: 'qwen', prices }, used);
  }
  world.fates = Array.from({ length: 12 }, () => 'failed');
  await world.stop(index);
  expect([...world.records.values()].map(({ spec }) => spec.calls)).toEqual(Array.from({ length: 10 }, () => 1));
});

test('what could not be written is kept for a day, within bounds, and the rest is counted as unbilled', async () => {
  const world = new TokenWorld();
  const index = world.start();
  const meter = world.meterOf(index);
  const prices = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };
  for (const name of ['tenant-a', 'gone']) world.namespaces.put({ metadata: { name } });
  world.fates = Array.from({ length: 1_000_000 }, () => 'failed');
  for (let key = 0; key < 20_010; key += 1)
    world
      .meterOf(index)
      .add({ namespace: 'tenant-a', tenant: 'tenant-a', by: `key/${key}`, model: 'qwen', prices }, undefined);
  expect(meter.unbilled).toEqual({ unreported: 20_010, full: 10, refused: 0 });
  // A call of a kind that is counted already needs no room.
  meter.add({ namespace: 'tenant-a', tenant: 'tenant-a', by: 'key/20000', model: 'qwen', prices }, undefined);
  meter.add({ namespace: 'tenant-a', tenant: 'tenant-a', by: 'key/19999', model: 'qwen', prices }, undefined);
  expect(meter.unbilled.full).toBe(11);
  await world.clock.advance(600_000);
  expect(meter.lagSeconds).toBeGreaterThanOrEqual(600);
  world.fates = [];
  await world.clock.advance(60_000);
  expect(meter.lagSeconds).toBe(0);
  expect([...world.records.values()].reduce((sum, { spec }) => sum + spec.calls, 0)).toBe(20_001);
  // Records of a tenant that is gone have no place.
  world.namespaces.remove('gone');
  world.fates = ['failed'];
  meter.add({ namespace: 'gone', tenant: 'gone', by: 'key/ci', model: 'qwen', prices }, undefined);
  await world.clock.advance(10_000);
  expect([meter.unwritten, meter.unbilled.refused]).toEqual([[], 1]);
});
