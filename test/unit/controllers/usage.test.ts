import fc from 'fast-check';
import { expect, test } from 'vitest';
import { claimOf, endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { closedBill, recordedStatus, usageRecords } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { addMoney, costOf, multiplyMoney } from '../../../src/resources/money.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { observed } from '../../support/instance-world.ts';
import { claimOn, gpuInstance, gpuNode, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

const START = Date.UTC(2026, 0, 1);

function run(instance: GpuInstance, readyAt: number, endAt: number): GpuInstance {
  const claim = claimOn('n', { gpuCount: 2, pricePerHour: '2.50' });
  const up = { ...instance, status: { ...instance.status, claim, stages: { ready: new Date(readyAt).toISOString() } } };
  const ended = { ...up, status: endedStatus(up, { reason: 'Stopped', message: '' }, endAt) };
  const ending = endingOf(ended.status);
  if (ending === undefined) throw new Error('the status has no ending');
  return { ...ended, status: releasedStatus(ended, ending, endAt + 5_000) };
}

test('a start whose container nobody saw end is billed until its end was decided, not until its pod was gone', () => {
  const { usage, claim } = run(gpuInstance('one'), START, START + 3_600_000).status ?? {};
  const until = new Date(START + 3_600_000).toISOString();
  expect(usage).toEqual({ gpuSeconds: 7200, cost: '2.50', currency: 'USD', until });
  expect(claim).toBeUndefined();
});

test('a start whose container never ran costs nothing', () => {
  const status = { claim: claimOn('n') };
  expect(closedBill(status, START + 3_600_000).usage).toEqual({ gpuSeconds: 0, cost: '0.00', currency: 'USD' });
});

test('GPU seconds are counted in thousandths', () => {
  const status = { claim: claimOn('n'), stages: { ready: new Date(START).toISOString() } };
  const first = closedBill(status, START + 1_390).usage;
  const usage = closedBill({ ...status, ...(first && { usage: first }) }, START + 2_390).usage;
  expect(usage?.gpuSeconds).toBe(2.39);
});

test('closing twice counts once: without a claim there is nothing to close', () => {
  const once = run(gpuInstance('one'), START, START + 60_000);
  expect(closedBill(once.status ?? {}, START + 120_000).usage).toEqual(once.status?.usage);
});

test('the total is the sum of the starts, to the millionth', () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 10 * 86_400_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(lengths, (durations) => {
      let instance = gpuInstance('one');
      let at = START;
      for (const duration of durations) {
        instance = run(instance, at, at + duration);
        at += duration;
      }
      const cost = durations.map((duration) => costOf('2.50', duration)).reduce(addMoney, '0.00');
      const gpuSeconds = durations.reduce((sum, duration) => sum + (duration / 1000) * 2, 0);
      expect(instance.status?.usage?.cost).toBe(cost);
      expect(instance.status?.usage?.gpuSeconds).toBeCloseTo(gpuSeconds, 3);
    }),
  );
});

test('a record is of the month of the latest end in it, also where the clock of an earlier start was ahead', () => {
  const december = Date.UTC(2026, 11, 1);
  const first = run(gpuInstance('one'), december - 86_400_000, december + 43_200_000);
  const second = run({ ...first, status: { ...first.status, incarnation: 1 } }, december - 80_000_000, december - 1);
  const intervals = second.status?.intervals ?? [];
  expect(intervals.map(({ to }) => Date.parse(to) < december)).toEqual([false, true]);
  expect(usageRecords(second, december).map(({ metadata }) => metadata.labels)).toEqual([
    { 'berth.dev/ended': '2026-12' },
  ]);
});

test('money is exact', () => {
  expect(addMoney('0.1', '0.2')).toBe('0.30');
  expect(multiplyMoney('1.234567', 8)).toBe('9.876536');
  expect(costOf('0.000001', 1_800_000)).toBe('0.000001');
  expect(costOf('3600', 1_000)).toBe('1.00');
  expect(() => addMoney('1e3', '1')).toThrow(RangeError);
});

test('an instance that starts a thousand times keeps a short status, and its records have every start once', () => {
  let instance = gpuInstance('one');
  const names: string[] = [];
  const starts: number[] = [];
  let longest = 0;
  // No eleven of its starts are within the hour before.
  const now = START + 7_200_000;
  for (let start = 1; start <= 1000; start += 1) {
    if (planNext(observed({ instance, now })).do === 'record') {
      const records = usageRecords(instance, START);
      names.push(...records.map(({ metadata }) => metadata.name));
      starts.push(...records.flatMap(({ spec }) => spec.intervals ?? []).map((interval) => interval.start));
      instance = { ...instance, status: recordedStatus(instance, records.length) };
    }
    expect(planNext(observed({ instance, now })).do).toBe('claim');
    instance = { ...instance, status: { ...instance.status, incarnation: start } };
    instance = run(instance, START + start * 10_000, START + start * 10_000 + 1000);
    longest = Math.max(longest, instance.status?.intervals?.length ?? 0);
  }
  const last = usageRecords(instance, START);
  starts.push(...last.flatMap(({ spec }) => spec.intervals ?? []).map((interval) => interval.start));
  names.push(...last.map(({ metadata }) => metadata.name));
  expect(longest).toBe(8);
  expect(starts).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1));
  expect([new Set(names).size, names.length]).toEqual([125, 125]);
  expect(instance.status?.usage?.gpuSeconds).toBe(2000);
});

test('a record has starts of one currency, and the sum of a status is that of the last one', () => {
  const first = run(gpuInstance('one'), START, START + 3_600_000);
  const claim = claimOn('n', { currency: 'EUR', pricePerHour: '1.00' });
  const ready = new Date(START + 7_200_000).toISOString();
  const bill = closedBill({ ...first.status, claim, stages: { ready } }, START + 10_800_000);
  expect(bill.usage).toMatchObject({ cost: '1.00', currency: 'EUR', gpuSeconds: 10_800 });
  const records = usageRecords({ ...first, status: { ...bill, incarnation: 2 } }, START);
  expect(records.map(({ spec }) => [spec.cost, spec.currency])).toEqual([
    ['2.50', 'USD'],
    ['1.00', 'EUR'],
  ]);
  expect(records.map(({ metadata }) => metadata.labels?.['berth.dev/ended'])).toEqual(['2026-01', '2026-01']);
});

test('an instance that never ran leaves a record without a start', () => {
  const [record, ...others] = usageRecords(gpuInstance('one', {}, { incarnation: 1 }), START);
  expect([record?.spec.cost, record?.spec.intervals, others]).toEqual(['0.00', [], []]);
  expect(usageRecords(gpuInstance('one'), START)).toEqual([]);
});

test('the claim keeps the price, the part of a GPU, and who created the instance', () => {
  const slices = gpuNode('n', { allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb': '7' } });
  const granted = inventoryOf({ nodes: [slices] }).inventory.grant(placeRequest());
  if (!('place' in granted)) throw new Error('nothing was granted');
  const instance = gpuInstance('one');
  const by = 'person/'.padEnd(400, 'x');
  const made = { ...instance, metadata: { ...instance.metadata, annotations: { 'berth.dev/created-by': by } } };
  expect(claimOf(made, granted, START)).toMatchObject({ gpuShare: '1/7', createdBy: by.slice(0, 320) });
  expect(claimOf(instance, granted, START).createdBy).toBeUndefined();
});
