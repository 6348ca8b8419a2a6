import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { closedBill } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { addMoney, costOf, multiplyMoney } from '../../../src/resources/money.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const START = Date.UTC(2026, 0, 1);

function run(instance: GpuInstance, readyAt: number, endAt: number): GpuInstance {
  const claim = claimOn('n', { gpuCount: 2, pricePerHour: '2.50' });
  const up = { ...instance, status: { ...instance.status, claim, stages: { ready: new Date(readyAt).toISOString() } } };
  const ended = { ...up, status: endedStatus(up, { reason: 'Stopped', message: '' }, endAt) };
  const ending = endingOf(ended.status);
  if (ending === undefined) throw new Error('the status has no ending');
  return { ...ended, status: releasedStatus(ended, ending, endAt + 5_000) };
}

test('a start is billed from ready until its end was decided, not until its pod was gone', () => {
  const { usage, claim } = run(gpuInstance('one'), START, START + 3_600_000).status ?? {};
  expect(usage).toEqual({ gpuSeconds: 7200, cost: '2.50', currency: 'USD' });
  expect(claim).toBeUndefined();
});

test('a start that was never ready costs nothing', () => {
  const status = { claim: claimOn('n') };
  expect(closedBill(status, START + 3_600_000).usage).toEqual({ gpuSeconds: 0, cost: '0.00', currency: 'USD' });
});

test('GPU seconds are counted in thousandths', () => {
  const status = { claim: claimOn('n'), stages: { ready: new Date(START).toISOString() } };
  const first = closedBill(status, START + 1_390).usage;
  const usage = closedBill({ ...status, ...(first && { usage: first }) }, START + 1_000).usage;
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
      for (const duration of durations) instance = run(instance, START, START + duration);
      const cost = durations.map((duration) => costOf('2.50', duration)).reduce(addMoney, '0.00');
      const gpuSeconds = durations.reduce((sum, duration) => sum + (duration / 1000) * 2, 0);
      expect(instance.status?.usage?.cost).toBe(cost);
      expect(instance.status?.usage?.gpuSeconds).toBeCloseTo(gpuSeconds, 3);
    }),
  );
});

test('money is exact', () => {
  expect(addMoney('0.1', '0.2')).toBe('0.30');
  expect(multiplyMoney('1.234567', 8)).toBe('9.876536');
  expect(costOf('0.000001', 1_800_000)).toBe('0.000001');
  expect(costOf('3600', 1_000)).toBe('1.00');
  expect(() => addMoney('1e3', '1')).toThrow(RangeError);
});
