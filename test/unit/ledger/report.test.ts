import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecordedSpending, TENANT } from '../../../src/budgets/spending.ts';
import { amountBetween, partsByMonth } from '../../../src/ledger/amount.ts';
import { Bills, billsOfRecord } from '../../../src/ledger/bills.ts';
import { endedIntervals, intervalOf } from '../../../src/ledger/interval.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import { type Grouping, totalsOf, UsageReport } from '../../../src/ledger/report.ts';
import { recordedStatus, usageRecords } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import type { Claim, GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { costOf, formatMoney } from '../../../src/resources/money.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 1);
const at = (ms: number): string => new Date(START + ms).toISOString();

function started(fromMs: number, claim: Partial<Claim> = {}, incarnation = 1): GpuInstanceStatus {
  return { claim: claimOn('n', claim), incarnation, stages: { ready: at(fromMs) } };
}

function interval(fromMs: number, toMs: number, claim: Partial<Claim> = {}, start = 1): Interval {
  const found = intervalOf(started(fromMs, claim, start), START + toMs);
  if (found === undefined) throw new Error('the interval is empty');
  return found;
}

function report(
  instances: readonly GpuInstance[],
  records: readonly UsageRecord[],
  { group, now, days = 10 }: { group: Grouping; now: number; days?: number },
) {
  const made = new UsageReport({ from: START, to: START + days * DAY, group, most: 1000 });
  const bills = new Bills(instances, START + now, (billed) => made.add(billed));
  for (const record of records) bills.addRecord(record);
  bills.addUnrecorded();
  return made.lines().map(({ gpuMs, cost, ...line }) => ({ ...line, gpuMs: Number(gpuMs), cost: formatMoney(cost) }));
}

test('a start over midnight is split, and its parts add up to its bill', () => {
  const over = interval(DAY - 1, DAY + 2, { pricePerHour: '2.49' });
  const lines = report([gpuInstance('one', {}, { intervals: [over] })], [], { group: 'day', now: 2 * DAY });
  expect(lines).toEqual([
    { group: '2026-01-01', currency: 'USD', product: over.product, open: false, gpuMs: 1, cost: '0.000001' },
    { group: '2026-01-02', currency: 'USD', product: over.product, open: false, gpuMs: 2, cost: '0.000001' },
  ]);
  expect(over.cost).toBe('0.000002');
});

test('a status that a backup brought back has the starts of the instance before, which a record may have', () => {
  const { metadata, ...before } = gpuInstance('one', {}, { intervals: [interval(0, 1000)], incarnation: 2 });
  const records = usageRecords({ ...before, metadata: { ...metadata, uid: 'uid-before' } }, START + DAY);
  const status = { ...before.status, ...started(2000, {}, 2), uid: 'uid-before' };
  const lines = report([{ ...before, metadata, status }], records, { group: 'day', now: 5000 });
  expect(lines.map(({ gpuMs }) => gpuMs)).toEqual([4000]);
});

test('a start counts for who asked for it, which may be another key than the one that created the instance', () => {
  const intervals = [
    interval(0, 1000, { createdBy: 'key/owner' }, 1),
    interval(2000, 5000, { createdBy: 'key/owner', startedBy: 'key/other' }, 2),
    interval(6000, 7000, { startedBy: 'key/other' }, 3),
    interval(8000, 8500, {}, 4),
  ];
  const by = (group: Grouping) =>
    report([gpuInstance('one', {}, { intervals })], [], { group, now: DAY }).map((line) => [line.group, line.gpuMs]);
  expect(by('starter')).toEqual([
    ['key/other', 4000],
    ['key/owner', 1000],
    ['kubernetes', 500],
  ]);
  expect(by('key')).toEqual([
    ['key/owner', 4000],
    ['kubernetes', 1500],
  ]);
});

test('an interval that is cut anywhere adds up to the whole, to the smallest unit', () => {
  const cuts = fc.array(fc.integer({ min: -DAY, max: 3 * DAY }), { maxLength: 20 });
  const price = fc.constantFrom('2.49', '0.000001', '0.333333', '98.765432');
  fc.assert(
    fc.property(cuts, price, fc.integer({ min: 1, max: 2 * DAY }), (moments, pricePerHour, ms) => {
      const whole = interval(0, ms, { pricePerHour, gpuShare: '1/7', gpuCount: 3 });
      const edges = [-DAY, ...moments, 3 * DAY].toSorted((a, b) => a - b).map((edge) => START + edge);
      const parts = edges.slice(1).map((edge, index) => amountBetween(whole, edges[index] ?? 0, edge));
      expect(formatMoney(parts.reduce((sum, { cost }) => sum + cost, 0n))).toBe(whole.cost);
      expect(Number(parts.reduce((sum, { gpuMs }) => sum + gpuMs, 0n))).toBe(Math.round(whole.gpuSeconds * 1000));
      expect(parts.every(({ cost, gpuMs }) => cost >= 0n && gpuMs >= 0n)).toBe(true);
    }),
  );
});

test('a start that runs counts until now and is open; one whose end was decided counts until then', () => {
  const running = gpuInstance('one', {}, started(0, { gpuCount: 2 }));
  const open = { group: 'one', currency: 'USD', product: claimOn('n').product, open: true };
  expect(report([running], [], { group: 'instance', now: 5000 })).toEqual([
    { ...open, gpuMs: 10_000, cost: costOf('1.00', 5000) },
  ]);
  const ending = { reason: 'Stopped', message: '', at: at(4000) };
  const stopping = { ...running, status: { ...running.status, ending } };
  expect(report([stopping], [], { group: 'instance', now: 5000 })).toEqual([
    { ...open, open: false, gpuMs: 8000, cost: costOf('1.00', 4000) },
  ]);
});

test('nothing is billed while an instance waits, pulls its image, or is stopped', () => {
  const waiting = gpuInstance('waiting');
  const pulling = gpuInstance('pulling', {}, { claim: claimOn('n'), incarnation: 1, stages: { scheduled: at(0) } });
  const stopped = gpuInstance('stopped', {}, { incarnation: 1, stages: { ready: at(0) }, intervals: [] });
  expect(report([waiting, pulling, stopped], [], { group: 'day', now: DAY })).toEqual([]);
});

test('what an instance and its records both have counts once, also between the two writes that move it', () => {
  const intervals = [interval(0, 1000, {}, 1), interval(2000, 3000, {}, 2)];
  const instance = gpuInstance('one', {}, { ...started(4000, {}, 3), intervals });
  const records = usageRecords(instance, START + 5000);
  const after = { ...instance, status: { ...instance.status, ...recordedStatus(instance, records.length) } };
  const seen = [report([instance], [], { group: 'instance', now: 5000 })];
  seen.push(report([instance], records, { group: 'instance', now: 5000 }));
  seen.push(report([after], records, { group: 'instance', now: 5000 }));
  expect(seen[0]).toMatchObject([{ gpuMs: 3000, open: true }]);
  expect(seen[1]).toEqual(seen[0]);
  expect(seen[2]).toEqual(seen[0]);
});

test('instances of one name at different times are two lines, and keys and people are told apart', () => {
  const first = gpuInstance('one', {}, { intervals: [interval(0, 1000, { createdBy: 'key/ci' })] });
  const second = { ...first, metadata: { ...first.metadata, uid: 'uid-other' } };
  const byHand = gpuInstance('two', {}, { intervals: [interval(0, 500)] });
  const all = [first, second, byHand];
  expect(report(all, [], { group: 'instance', now: DAY }).map(({ group }) => group)).toEqual(['one', 'one', 'two']);
  expect(report(all, [], { group: 'key', now: DAY })).toMatchObject([
    { group: 'key/ci', gpuMs: 2000 },
    { group: 'kubernetes', gpuMs: 500 },
  ]);
});

test('each currency has a line and a total of its own', () => {
  const intervals = [interval(0, 1000), interval(2000, 4000, { currency: 'EUR', product: 'H100' }, 2)];
  const made = new UsageReport({ from: START, to: START + DAY, group: 'day', most: 10 });
  for (const one of intervals) made.add({ instance: 'one', uid: 'u', interval: one, open: false });
  expect(made.lines()).toMatchObject([{ currency: 'EUR', product: 'H100' }, { currency: 'USD' }]);
  expect(totalsOf(made.lines())).toMatchObject([
    { currency: 'EUR', gpuMs: 2000n },
    { currency: 'USD', gpuMs: 1000n },
  ]);
});

test('records of earlier releases, and sums in statuses of earlier releases, count once for the day of their end', () => {
  const usage = { gpuSeconds: 60, cost: '0.50', currency: 'USD' };
  const status = {
    incarnation: 2,
    usage,
    stages: { stopped: at(DAY + 5) },
    lastProduct: { product: 'L4', gpuCount: 1 },
  };
  const instance = gpuInstance('one', {}, status);
  const line = { group: '2026-01-02', currency: 'USD', product: 'L4', open: false, gpuMs: 60_000, cost: '0.50' };
  expect(endedIntervals(status)).toMatchObject([{ start: 0, cost: '0.50' }]);
  expect(report([instance], [], { group: 'day', now: 5 * DAY })).toEqual([line]);
  const [record] = usageRecords(instance, START);
  if (record === undefined) throw new Error('no record');
  const { intervals: _intervals, ...spec } = record.spec;
  expect(report([instance], [record], { group: 'day', now: 5 * DAY })).toEqual([line]);
  expect(report([instance], [{ ...record, spec }], { group: 'day', now: 5 * DAY })).toEqual([line]);
});

test('a report ends rather than grow beyond its lines', () => {
  const made = new UsageReport({ from: START, to: START + 400 * DAY, group: 'day', most: 3 });
  const long = interval(0, 300 * DAY);
  expect(() => made.add({ instance: 'one', uid: 'u', interval: long, open: false })).toThrow(RangeError);
});

// gpustack#6054: a configuration that changes within an hour, a slice that is billed whole, a full hour below 3600 s, a
// record that cannot be corrected because it has nothing but a sum.
test('a change of GPUs within an hour bills each minute with the GPUs and at the price that it had', () => {
  const four = interval(0, 1_800_000, { gpuCount: 4, pricePerHour: '10' }, 1);
  const one = interval(1_920_000, 3_120_000, { gpuCount: 1, pricePerHour: '2.5', product: 'H100' }, 2);
  const instance = gpuInstance('one', {}, { incarnation: 2, intervals: [four, one], usage: undefined });
  const [record] = usageRecords(instance, START);
  expect(record?.spec).toMatchObject({ gpuSeconds: 8400, cost: '5.833333' });
  expect(record?.spec.intervals).toEqual([four, one]);
  expect(four).toMatchObject({ gpuSeconds: 7200, cost: '5.00' });
  expect(one).toMatchObject({ gpuSeconds: 1200, cost: '0.833333' });
});

test('a slice counts as its part of a GPU, and a full hour has 3600 seconds', () => {
  expect(interval(0, 3_600_000).gpuSeconds).toBe(3600);
  expect(interval(0, 3_600_000, { gpuShare: '1/7' }).gpuSeconds).toBe(514.286);
  expect(interval(0, 3_600_000, { gpuShare: '3/7', gpuCount: 2 }).gpuSeconds).toBe(3085.714);
  expect(interval(0, 3_600_000, { gpuShare: '1/4' }).gpuSeconds).toBe(900);
});

// gpustack#6279: the pod is gone, no controller runs, and the meter goes on.
test('the meter of an instance whose pod went away stops when its end was decided, whenever the pod is cleaned up', () => {
  const lost = { reason: 'NodeLost', message: '', at: at(60_000) };
  const instance = gpuInstance('one', {}, { ...started(0), ending: lost });
  for (const now of [60_000, 3_600_000, 5 * DAY]) {
    expect(report([instance], [], { group: 'instance', now })).toMatchObject([{ gpuMs: 60_000, open: false }]);
  }
});

test('after a clock went back by seconds no moment is billed twice, and no start ends before it began', () => {
  const usage = { gpuSeconds: 3600, cost: '1.00', currency: 'USD', until: at(3_600_000) };
  const status = { ...started(3_595_000, { grantedAt: at(3_590_000) }), usage };
  expect(intervalOf(status, START + 3_600_000)).toBeUndefined();
  expect(intervalOf(status, START + 5_400_000)).toMatchObject({ from: at(3_600_000), gpuSeconds: 1800 });
});

test.each([-1, 0, 1, DAY - 1, DAY])(
  'a correction %d ms after midnight counts once, for the day and the month of its moment, also in a budget',
  (ms) => {
    const moment = Date.UTC(2026, 10, 1) + ms;
    const endedAt = new Date(moment).toISOString();
    const sum = { product: '', gpuCount: 0, gpuSeconds: 0, cost: '7.00', currency: 'USD', endedAt };
    const adjustment = { type: 'Credit' as const, reason: 'The node was slow.' };
    const spec = { instance: 'one', instanceUid: '', ...sum, adjustment };
    const record: UsageRecord = { metadata: { name: 'credit', namespace: 'a' }, spec };
    const span = { from: Date.UTC(2026, 9, 30), to: Date.UTC(2026, 10, 4) };
    const days = new UsageReport({ ...span, group: 'day', most: 10 });
    for (const billed of billsOfRecord(record)) days.add(billed);
    expect(days.lines()).toMatchObject([{ group: endedAt.slice(0, 10), cost: -7_000_000n }]);
    const months = [9, 10].map((month) => monthOf(Date.UTC(2026, month, 15)));
    const ofMonths = months.map(({ from, to }) => {
      const all = new UsageReport({ from, to, group: 'key', most: 10 });
      for (const billed of billsOfRecord(record)) all.add(billed);
      return all.lines().length;
    });
    const budgets = months.map((month) => {
      const spending = new RecordedSpending(month);
      spending.count(record, 1);
      return spending.of('a', TENANT)?.costs.get('USD') === -7_000_000n ? 1 : 0;
    });
    const expected = months.map(({ from, to }) => (moment >= from && moment < to ? 1 : 0));
    expect([ofMonths, budgets]).toEqual([expected, expected]);
    expect(
      billsOfRecord(record)
        .flatMap(({ interval: one }) => partsByMonth(one))
        .map(({ month }) => month.name),
    ).toEqual([endedAt.slice(0, 7)]);
  },
);

test('a start that ended by a clock that was far ahead makes the next one neither free nor longer', () => {
  const usage = { gpuSeconds: 3600, cost: '1.00', currency: 'USD', until: at(30 * DAY) };
  const status = { ...started(1_800_000, { grantedAt: at(1_790_000) }), usage };
  for (const end of [3_600_000, 31 * DAY]) {
    expect(intervalOf(status, START + end)).toMatchObject({
      from: at(1_800_000),
      gpuSeconds: (end - 1_800_000) / 1000,
    });
  }
});

test('a correction by the operator counts for its day, is no start, and hides none', () => {
  const instance = gpuInstance('one', {}, started(0, { pricePerHour: '3.60' }));
  const [record] = usageRecords(instance, START);
  if (record === undefined) throw new Error('no record');
  const { intervals: _intervals, ...spec } = record.spec;
  const correct = (type: 'Credit' | 'Charge', cost: string): UsageRecord => ({
    metadata: { name: type },
    spec: { ...spec, cost, currency: 'USD', endedAt: at(DAY + 1), adjustment: { type, reason: 'The node was slow.' } },
  });
  const now = 1000;
  const records = [correct('Credit', '0.50'), correct('Charge', '0.20')];
  expect(report([instance], records, { group: 'key', now })).toMatchObject([
    { group: 'adjustment', cost: '-0.30', open: false },
    { group: 'kubernetes', cost: '0.001', open: true },
  ]);
  expect(report([instance], records, { group: 'day', now })).toMatchObject([
    { group: '2026-01-01', cost: '0.001' },
    { group: '2026-01-02', cost: '-0.30' },
  ]);
});

test('the silences of a node are in the interval and not in its bill, and its parts add up, wherever it is cut', () => {
  const gaps = fc.array(fc.tuple(fc.integer({ min: 0, max: DAY / 4 }), fc.integer({ min: 1, max: DAY / 4 })), {
    maxLength: 8,
  });
  const cuts = fc.array(fc.integer({ min: -DAY, max: 5 * DAY }), { maxLength: 20 });
  fc.assert(
    fc.property(gaps, cuts, fc.integer({ min: 1, max: 4 * DAY }), fc.boolean(), (lengths, moments, ms, isOpen) => {
      let end = 0;
      const silences: { from: string; to?: string }[] = lengths.map(([gap, length]) => {
        const from = end + gap;
        end = from + length;
        return { from: at(from), to: at(end) };
      });
      if (isOpen) silences.push({ from: at(end) });
      const heard = (from: number, to: number): number => {
        const inside = (moment: string): number => Math.min(to, Math.max(from, Date.parse(moment) - START));
        return silences.reduce((sum, one) => sum - (one.to ? inside(one.to) : to) + inside(one.from), to - from);
      };
      const status = { ...started(0, { pricePerHour: '2.49', gpuCount: 3 }), silences };
      const whole = intervalOf(status, START + ms);
      if (heard(0, ms) === 0) expect(whole).toBeUndefined();
      if (whole === undefined) return;
      expect(whole.gpuSeconds).toBe((3 * heard(0, ms)) / 1000);
      expect(whole.cost).toBe(costOf('2.49', heard(0, ms)));
      for (const moment of moments) {
        const part = amountBetween(whole, START - DAY, START + moment);
        expect(Number(part.gpuMs)).toBe(3 * heard(0, Math.max(0, Math.min(ms, moment))));
      }
      const edges = [-DAY, ...moments, 5 * DAY].toSorted((a, b) => a - b).map((edge) => START + edge);
      const parts = edges.slice(1).map((edge, index) => amountBetween(whole, edges[index] ?? 0, edge));
      expect(formatMoney(parts.reduce((sum, { cost }) => sum + cost, 0n))).toBe(whole.cost);
    }),
    { numRuns: 50 },
  );
});
