import { expect, test } from 'vitest';
import type { KubeClient, ListOptions } from '../../../src/kube/client/client.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { usageRecords } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { intervalOf } from '../../../src/ledger/interval.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import type { Charge } from '../../../src/sink/columns.ts';
import { type Exported, exportUsage } from '../../../src/sink/export.ts';
import { printExport } from '../../../src/sink/print.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { MemorySink } from '../../support/memory-sink.ts';

const NOW = Date.UTC(2026, 10, 23, 12);
const MINUTE = 60_000;
const at = (ms: number): string => new Date(NOW + ms).toISOString();

interface Objects {
  instances?: readonly GpuInstance[];
  records?: readonly UsageRecord[];
  tokens?: readonly TokenRecord[];
}

/** An instance whose starts ended, each after a minute. */
function instance(name: string, starts = 1, pricePerHour = '6.00'): GpuInstance {
  const intervals = Array.from({ length: starts }, (_, index) => {
    const from = -(2 * index + 2) * MINUTE;
    const claim = claimOn('n', { pricePerHour });
    const found = intervalOf({ claim, incarnation: index + 1, stages: { ready: at(from) } }, NOW + from + MINUTE);
    if (found === undefined) throw new Error('the interval is empty');
    return found;
  });
  return gpuInstance(name, {}, { incarnation: starts, intervals });
}

const recordsOf = (one: GpuInstance): UsageRecord[] => usageRecords(one, NOW);

function tokens(day: string, cost = '0.10'): TokenRecord {
  const prices = { inputPrice: '1.00', cachedInputPrice: '1.00', outputPrice: '1.00' };
  const counts = { calls: 1, unreported: 0, inputTokens: 100_000, cachedInputTokens: 0, outputTokens: 0 };
  const entries = [{ by: 'key/ci', model: 'tiny', ...prices, ...counts, cost }];
  return {
    metadata: { namespace: 'default', name: `tokens-${day}` },
    spec: { day, replica: 'api-1', calls: 1, cost, currency: 'EUR', entries },
  };
}

/** `ahead`: milliseconds of the clock before the API server tells the time. */
async function run(sink: MemorySink, objects: Objects, { all = false, now = NOW, ahead = 0 } = {}) {
  let apart = ahead;
  const selectors: (string | undefined)[] = [];
  const kinds: Record<string, readonly KubeObject[] | undefined> = {
    GPUInstance: objects.instances,
    UsageRecord: objects.records,
    TokenRecord: objects.tokens,
  };
  const list = ({ kind }: { kind: string }, { labelSelector }: ListOptions = {}) => {
    selectors.push(labelSelector);
    apart = 0;
    return Promise.resolve({ items: kinds[kind] ?? [], resourceVersion: '1' });
  };
  const client = { list } as unknown as Pick<KubeClient, 'list'>;
  const exported = await exportUsage({ client, sink, clock: { now: () => now + apart } }, all);
  return { exported, selectors, text: printExport(exported) };
}

const sums = ({ tally }: Exported) =>
  tally.lines().map(({ month, currency, cluster, sink }) => [month, currency, cluster.count, cluster.cost, sink.count]);

test('a run brings everything, a second one adds nothing, and both say the same', async () => {
  const sink = new MemorySink();
  const objects = { instances: [instance('a', 2)], records: recordsOf(instance('b')), tokens: [tokens('2026-11-01')] };
  const first = await run(sink, objects);
  expect(first.exported.tally.added).toBe(4);
  const second = await run(sink, objects);
  expect(second.exported.tally.added).toBe(0);
  const expected = [
    ['2026-11', 'EUR', 1, 100_000n, 1],
    ['2026-11', 'USD', 3, 300_000n, 3],
  ];
  expect([sums(first.exported), sums(second.exported)]).toEqual([expected, expected]);
  expect(first.text).toBe(
    [
      'Read 1 instances, 1 usage records and 1 token records: all.',
      'Added 4 rows.',
      '',
      'month    currency  charges  cost  rows  cost in rows',
      '2026-11  EUR             1  0.10     1          0.10  same',
      '2026-11  USD             3  0.30     3          0.30  same',
      '',
      'The sink has every charge that was read.',
      '',
    ].join('\n'),
  );
});

test('a start that its instance and its record both have is one charge', async () => {
  const sink = new MemorySink();
  const both = instance('a', 3);
  const { exported } = await run(sink, { instances: [both], records: recordsOf(both) });
  expect(sums(exported)).toEqual([['2026-11', 'USD', 3, 300_000n, 3]]);
});

test('charges go in batches of a bounded size, however many an object has', async () => {
  const sink = new MemorySink();
  const records = Array.from({ length: 300 }, (_, index) => recordsOf(instance(`i-${index}`, 8))).flat();
  await run(sink, { records });
  expect(sink.batches).toEqual([500, 500, 500, 500, 400]);
});

test('a run asks for the months from one before the last complete run on, and for records without a month', async () => {
  const sink = new MemorySink();
  expect((await run(sink, {})).selectors).toEqual([undefined, undefined, undefined]);
  expect(sink.last).toBe(NOW);
  const later = await run(sink, {}, { now: Date.UTC(2026, 11, 5) });
  const [, selector] = later.selectors;
  // The last complete run was in November, so October is the first month that is read.
  expect(selector).toMatch(/^berth\.dev\/ended notin \(2026-09,2026-08,/);
  expect(later.selectors).toEqual([undefined, selector, selector]);
  expect(later.text).toContain('those that ended from 2026-10 on, and those without a month');
  expect((await run(sink, {}, { all: true })).selectors).toEqual([undefined, undefined, undefined]);
});

test('after a run with a clock that was years ahead nothing of now is left out', async () => {
  const sink = new MemorySink();
  await run(sink, {}, { now: Date.UTC(2030, 0) });
  expect((await run(sink, {})).selectors[1]).toMatch(/notin \(2026-09,/);
});

test('tokens of days that may still grow are not exported', async () => {
  const sink = new MemorySink();
  const records = ['2026-11-21', '2026-11-22', '2026-11-23'].map((day) => tokens(day));
  const { exported, text } = await run(sink, { tokens: records });
  expect(exported.read.tokenRecords).toBe(1);
  expect(text).toContain('Left for later: 2 token records of days that may still grow.');
  expect([...sink.charges.values()].map(({ row }) => row.ChargePeriodStart)).toEqual(['2026-11-21T00:00:00.000Z']);
});

test('with a clock that is days ahead, tokens of days that may still grow are left all the same', async () => {
  const sink = new MemorySink();
  const objects = { tokens: [tokens('2026-11-22'), tokens('2026-11-23')] };
  const { exported } = await run(sink, objects, { ahead: 3 * 24 * 60 * MINUTE });
  expect([exported.read.growing, sink.charges.size, sink.last]).toEqual([2, 0, NOW]);
});

test('a charge that stands at another cost is told and left, and the run is not complete', async () => {
  const sink = new MemorySink();
  await run(sink, { records: [...recordsOf(instance('a')), ...recordsOf(instance('b'))] });
  sink.last = 1;
  const dearer = recordsOf(instance('b', 1, '12.00'));
  const { exported, text } = await run(sink, { records: [...recordsOf(instance('a')), ...dearer] }, { all: true });
  const id = 'start/default/b/1/2026-11-23T11:58:00.000Z/2026-11';
  expect(exported.tally.differing).toEqual({ count: 1, first: id });
  expect(text).toContain('2026-11  USD             2  0.30     2          0.20  DIFFERS');
  expect(text).toContain(`1 charges stand in the sink at another cost, and were left as they are. The first: ${id}`);
  expect(text).toContain('NOT SAFE: the sink and the cluster differ. Delete no record.');
  expect(sink.charges.get(id)?.cost).toBe(100_000n);
  expect(sink.last).toBe(1);
});

test('two charges that differ by the same amount are no match', async () => {
  const sink = new MemorySink();
  await run(sink, { records: [...recordsOf(instance('a')), ...recordsOf(instance('b', 1, '12.00'))] });
  const swapped = [...recordsOf(instance('a', 1, '12.00')), ...recordsOf(instance('b'))];
  const { exported } = await run(sink, { records: swapped });
  expect(exported.tally.isSound()).toBe(false);
  expect(exported.tally.differing?.count).toBe(2);
});

test('a charge in another currency, and one that the sink lost, are differences', async () => {
  const sink = new MemorySink();
  const records = recordsOf(instance('a'));
  await run(sink, { records });
  const euros = structuredClone(records).map((one) => {
    const intervals = one.spec.intervals?.map((interval) => ({ ...interval, currency: 'EUR' }));
    return { ...one, spec: { ...one.spec, currency: 'EUR', intervals } };
  });
  const other = await run(sink, { records: euros });
  expect(other.exported.tally.differing?.count).toBe(1);
  expect(other.text).toMatch(/EUR +1 +0\.10 +0 +0\.00 +DIFFERS/);
  class Losing extends MemorySink {
    override write(charges: readonly Charge[]): ReturnType<MemorySink['write']> {
      return super.write(charges.slice(1)).then(({ added }) => ({ added, stored: new Map() }));
    }
  }
  const lost = await run(new Losing(), { records });
  expect(lost.text).toMatch(/USD +1 +0\.10 +0 +0\.00 +DIFFERS/);
  expect(lost.exported.tally.isSound()).toBe(false);
});

test('a record that cannot be read stops no other, and the run is not complete', async () => {
  const sink = new MemorySink();
  const [bad, ...none] = recordsOf(instance('bad'));
  if (bad === undefined) throw new Error('no record');
  const intervals = bad.spec.intervals?.map((interval) => ({ ...interval, cost: '-1' })) ?? [];
  const records = [{ ...bad, spec: { ...bad.spec, intervals } }, ...none, ...recordsOf(instance('good'))];
  const { exported, text } = await run(sink, { records });
  expect(sums(exported)).toEqual([['2026-11', 'USD', 1, 100_000n, 1]]);
  expect(text).toContain('1 records have an amount or a time that cannot be read. The first: default/');
  expect(sink.last).toBeUndefined();
});

test('without a charge it says so', async () => {
  expect((await run(new MemorySink(), {})).text).toContain('There is no charge yet.');
});
