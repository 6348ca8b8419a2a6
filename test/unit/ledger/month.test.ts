import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  closedBill,
  hasFullBill,
  recordedStatus,
  usageRecords,
} from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { toCsv } from '../../../src/http/features/usage/routes.ts';
import { Bills } from '../../../src/ledger/bills.ts';
import { type Grouping, type Line, totalsOf, UsageReport } from '../../../src/ledger/report.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { addMoney, formatMoney, parseMoney } from '../../../src/resources/money.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const HOUR = 3_600_000;
const JANUARY = { from: Date.UTC(2026, 0, 1), to: Date.UTC(2026, 1, 1) };
/** A day after the end of the month. */
const CLOSED = Date.UTC(2026, 1, 2);
const LATER = Date.UTC(2026, 3, 1);
const INSTANCES = 1000;

/** One start: hours until it is ready, how long it runs, and what it costs. */
interface Start {
  pauseMs: number;
  ms: number;
  price: string;
  gpuCount: number;
  gpuShare: string;
  createdBy: string;
}

/** What the cluster has of some lives at a moment. */
interface Cluster {
  instances: GpuInstance[];
  records: UsageRecord[];
}

const start: fc.Arbitrary<Start> = fc.record({
  pauseMs: fc.integer({ min: 1, max: 90 * HOUR }),
  ms: fc.oneof(fc.integer({ min: 1, max: HOUR }), fc.integer({ min: 1, max: 400 * HOUR })),
  price: fc.constantFrom('2.49', '0.000001', '0.333333', '98.32'),
  gpuCount: fc.integer({ min: 1, max: 8 }),
  gpuShare: fc.constantFrom('1', '1/7', '1/4'),
  createdBy: fc.constantFrom('key/ci', 'key/notebooks', 'person/ann'),
});
const lives = fc.array(fc.array(start, { minLength: 1, maxLength: 20 }), {
  minLength: INSTANCES,
  maxLength: INSTANCES,
});

/** A life until a moment, as the controller keeps it. It is gone when its last start has ended. */
function lifeUntil(name: string, starts: readonly Start[], moment: number): Cluster {
  let instance = gpuInstance(name);
  const records: UsageRecord[] = [];
  let at = JANUARY.from - 100 * HOUR;
  for (const [index, { pauseMs, ms, price, gpuCount, gpuShare, createdBy }] of starts.entries()) {
    const ready = at + pauseMs;
    if (ready > moment) return { instances: [instance], records };
    if (hasFullBill(instance)) {
      const written = usageRecords(instance, moment);
      records.push(...written);
      instance = { ...instance, status: recordedStatus(instance, written.length) };
    }
    const claim = claimOn('n', { pricePerHour: price, gpuCount, gpuShare, createdBy });
    const stages = { ready: new Date(ready).toISOString() };
    const status = { ...instance.status, claim, stages, incarnation: index + 1 };
    at = ready + ms;
    if (at > moment) return { instances: [{ ...instance, status }], records };
    const { claim: _claim, ...rest } = status;
    instance = { ...instance, status: { ...rest, ...closedBill(status, at) } };
  }
  return { instances: [], records: [...records, ...usageRecords(instance, moment)] };
}

function clusterAt(all: readonly (readonly Start[])[], moment: number): Cluster {
  const found = all.map((starts, index) => lifeUntil(`i-${index}`, starts, moment));
  return {
    instances: found.flatMap(({ instances }) => instances),
    records: found.flatMap(({ records }) => records),
  };
}

function linesOf(
  { instances, records }: Cluster,
  group: Grouping,
  { from, to, now }: typeof JANUARY & { now: number },
) {
  const report = new UsageReport({ from, to, group, most: 10_000 });
  const bills = new Bills(instances, now, (billed) => report.add(billed));
  for (const record of records) bills.addRecord(record);
  bills.addUnrecorded();
  return report.lines();
}

const costOf = (lines: readonly Line[]): string => formatMoney(totalsOf(lines)[0]?.cost ?? 0n);

test('a month of load adds up in every way that it is asked for, and does not change once it is over', () => {
  const [all = []] = fc.sample(lives, { numRuns: 1 });
  const closed = clusterAt(all, CLOSED);
  const january = { ...JANUARY, now: CLOSED };
  const days = linesOf(closed, 'day', january);
  expect(days.map(({ group }) => group)).toHaveLength(31);
  const ways = (['day', 'instance', 'key'] as const).map((group) => linesOf(closed, group, january));
  expect(new Set(ways.map(costOf)).size).toBe(1);
  // The CSV has the same sum.
  const items = days.map(({ cost, gpuMs, ...line }) => {
    const amount = { cost: formatMoney(cost), gpu_seconds: Number(gpuMs) / 1000 };
    const none = { calls: 0, input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 };
    return { ...line, ...amount, ...none, name: null, product: line.product ?? null };
  });
  const rows = toCsv({ items }).trim().split('\r\n').slice(1);
  expect(rows.map((row) => row.split(',')[3] ?? '').reduce(addMoney, '0.00')).toBe(costOf(days));
  // Two months later everything has ended or gone on, and January is what it was.
  const later = clusterAt(all, LATER);
  expect(later.records.length).toBeGreaterThan(closed.records.length);
  const again = linesOf(later, 'day', { ...JANUARY, now: LATER });
  expect(again).toEqual(days);
});

test('the records of lives that are over have the whole bill, and the months add up to it', () => {
  const [all = []] = fc.sample(lives, { numRuns: 1 });
  const end = Date.UTC(2028, 0, 1);
  const over = clusterAt(all, end);
  expect(over.instances).toEqual([]);
  const sum = over.records.reduce((total, { spec }) => total + parseMoney(spec.cost), 0n);
  const edges = Array.from({ length: 26 }, (_, month) => Date.UTC(2025, 11 + month, 1));
  const months = edges.slice(1).map((to, index) => {
    return totalsOf(linesOf(over, 'key', { from: edges[index] ?? 0, to, now: end }))[0]?.cost ?? 0n;
  });
  expect(months.reduce((total, cost) => total + cost, 0n)).toBe(sum);
});
