import { describe, expect, test } from 'vitest';
import { compareRanks } from '../../../src/caches/line-order.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { readyFinding } from '../../../src/controllers/gpu-instance/decide/status/ready.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import type { Ending } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { wishOf } from '../../../src/resources/instances/rented.ts';
import { NOW, observed } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const SSH = { host: '', port: 22 };
const CREATED = Date.UTC(2026, 0, 1);

function edited(instance: GpuInstance, generation: number, spec: Partial<GpuInstance['spec']> = {}): GpuInstance {
  return { ...instance, metadata: { ...instance.metadata, generation }, spec: { ...instance.spec, ...spec } };
}

/** The instance with the status of a look at this time. */
function looked(instance: GpuInstance, now: number): GpuInstance {
  return { ...instance, status: statusOf(observed({ instance, now }), SSH) };
}

/** The instance after a start that ended at this time. */
function ended(instance: GpuInstance, ending: Ending, now: number): GpuInstance {
  const ends = looked({ ...instance, status: endedStatus(instance, ending, now) }, now);
  const seen = endingOf(ends.status);
  return { ...ends, status: releasedStatus(ends, seen ?? expect.unreachable(), now) };
}

const running = (status: GpuInstanceStatus = {}): GpuInstance =>
  gpuInstance('one', {}, { claim: claimOn('n'), incarnation: 1, podName: 'one-1', ...status });

const PREEMPTED: Ending = { reason: 'Preempted', message: 'Others came.' };
const LOST: Ending = { reason: 'NodeLost', message: 'The node is gone.' };

describe('the time in line', () => {
  test('is that of the creation, to the millisecond when the controller looks within its second', () => {
    const since = (now: number): string | undefined => looked(gpuInstance('one'), now).status?.waitingSince;
    expect(since(CREATED + 250)).toBe('2026-01-01T00:00:00.250Z');
    expect(since(CREATED + 90_000)).toBe('2026-01-01T00:00:00.999Z');
    // The clock of the controller is behind.
    expect(since(CREATED - 90_000)).toBe('2026-01-01T00:00:00.000Z');
  });

  test('is kept while the instance waits, and when it is preempted or loses its node', () => {
    const first = looked(gpuInstance('one'), CREATED + 250);
    expect(looked(first, NOW).status?.waitingSince).toBe('2026-01-01T00:00:00.250Z');
    for (const ending of [PREEMPTED, LOST]) {
      const start = { ...running({ ...first.status }) };
      const again = looked(ended(start, ending, NOW), NOW + 1);
      expect(again.status?.waitingSince).toBe('2026-01-01T00:00:00.250Z');
    }
  });

  test('begins anew at a start that a person asks for', () => {
    const start = looked(running(), CREATED + 250);
    const stopped = ended(edited(start, 2, { powerState: 'Stopped' }), { reason: 'Stopped', message: '' }, NOW);
    expect(stopped.status?.waitingSince).toBeUndefined();
    const asked = looked(edited(looked(stopped, NOW + 1), 3, { powerState: 'Running' }), NOW + 2_345);
    expect(asked.status?.waitingSince).toBe('2026-01-01T00:30:02.345Z');
    const over = ended(start, { reason: 'Expired', message: '' }, NOW);
    const again = looked(edited(over, 2, { startRequest: 'now' }), NOW + 2_345);
    expect(again.status?.waitingSince).toBe('2026-01-01T00:30:02.345Z');
  });

  test('begins anew with a higher price, also for who waited long at one at which nobody lets', () => {
    const price = { pricePerHour: '2', currency: 'USD', named: '0.01' };
    const since = '2026-01-01T00:00:00.250Z';
    const waits = (status: GpuInstanceStatus, maxPricePerHour?: string): string | undefined => {
      const spec = { offerId: 7, ...(maxPricePerHour !== undefined && { maxPricePerHour }) };
      const one = gpuInstance('one', spec);
      const rented = { wish: wishOf(spec), price };
      const waiting = { ...one, status: { waitingSince: since, rented, ...status } };
      const first = looked(edited(waiting, 2), NOW);
      expect(looked(first, NOW + 60_000).status?.waitingSince).toBe(first.status?.waitingSince);
      return first.status?.waitingSince;
    };
    const anew = '2026-01-01T00:30:00.000Z';
    expect(waits({}, '3')).toBe(anew);
    expect(waits({}, '0.02')).toBe(anew);
    // Without a price of its own it pays the one that its owner saw.
    expect(waits({})).toBe(anew);
    expect(waits({}, '0.01')).toBe(since);
    expect(waits({}, '0.005')).toBe(since);
    // Others end for it already.
    expect(waits({ othersEnded: true }, '3')).toBe(since);
    expect(waits({ claim: claimOn('n') }, '3')).toBe(since);
    // Its owner has named an offer since.
    expect(waits({ rented: { wish: wishOf({}), price } }, '0.01')).toBe(anew);
  });

  test('begins anew with other GPUs, also for who waited long for some that nobody has', () => {
    const first = looked(gpuInstance('one', { gpu: { product: 'nobody has it', count: 1 } }), CREATED + 250);
    expect(looked(first, NOW - 1).status?.waitingSince).toBe('2026-01-01T00:00:00.250Z');
    const other = looked(edited(first, 2, { offerId: 7 }), NOW);
    expect(other.status?.waitingSince).toBe('2026-01-01T00:30:00.000Z');
    expect(looked(other, NOW + 60_000).status?.waitingSince).toBe('2026-01-01T00:30:00.000Z');
  });

  test('begins anew with other GPUs that were named while the instance ran, or while others ended for it', () => {
    const first = looked(gpuInstance('one'), CREATED + 250);
    const start = looked(running({ ...first.status }), CREATED + 300);
    const named = looked(edited(start, 2, { offerId: 8 }), CREATED + 500);
    expect(named.status?.waitingSince).toBe('2026-01-01T00:00:00.250Z');
    const away = ended(named, { reason: 'PodDeleted', message: '' }, NOW - 1);
    const again = looked(away, NOW);
    expect(again.status?.waitingSince).toBe('2026-01-01T00:30:00.000Z');
    expect(looked(again, NOW + 60_000).status?.waitingSince).toBe('2026-01-01T00:30:00.000Z');
    const served = { ...first, status: { ...first.status, othersEnded: true } };
    expect(looked(edited(served, 2, { offerId: 8 }), NOW).status?.waitingSince).toBe('2026-01-01T00:30:00.000Z');
  });

  test('of an instance that was made switched off begins when it is switched on', () => {
    const off = looked(gpuInstance('one', { powerState: 'Stopped' }), CREATED + 1);
    expect(off.status?.waitingSince).toBeUndefined();
    const on = looked(edited(off, 2, { powerState: 'Running' }), NOW);
    expect(on.status?.waitingSince).toBe('2026-01-01T00:30:00.000Z');
  });

  test('orders the line, and not the namespace, the name or the age of the object', () => {
    const waiting = (name: string, namespace: string, waitingSince?: string): GpuInstance => {
      const one = gpuInstance(name, {}, waitingSince === undefined ? {} : { waitingSince });
      return { ...one, metadata: { ...one.metadata, namespace } };
    };
    const old = waiting('a', 'aa', '2026-01-01T00:00:00.300Z');
    const line = [old, waiting('b', 'zz', '2026-01-01T00:00:00.200Z'), waiting('c', 'mm')];
    expect(line.toSorted(compareRanks).map(({ metadata }) => metadata.name)).toEqual(['c', 'b', 'a']);
  });
});

describe('an instance that was preempted', () => {
  /** Milliseconds until it asks again. */
  function pauseOf(instance: GpuInstance): number {
    const step = planNext(observed({ instance, now: NOW }));
    return step.do === 'wait' ? step.until - NOW : 0;
  }

  test('waits before it asks for a place again, longer each time that it had less than a minute', () => {
    let instance = running({ stages: { ready: new Date(NOW - 3_600_000).toISOString() } });
    const pauses: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      instance = ended(instance, PREEMPTED, NOW);
      pauses.push(pauseOf(instance) / 1000);
      const stages = { ready: new Date(NOW - 59_000).toISOString() };
      instance = { ...instance, status: { ...instance.status, claim: claimOn('n'), stages, intervals: [] } };
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300]);
  });

  test('waits for the shortest time again after a start of a minute', () => {
    const ready = new Date(NOW - 60_000).toISOString();
    const lastTime = new Date(NOW - 60_000).toISOString();
    const instance = running({ stages: { ready }, preemptions: { count: 6, lastTime } });
    expect(pauseOf(ended(instance, PREEMPTED, NOW))).toBe(5_000);
    expect(pauseOf(ended(instance, LOST, NOW))).toBe(0);
  });

  test('says so meanwhile', () => {
    const instance = ended(running(), PREEMPTED, NOW);
    expect(readyFinding(observed({ instance, now: NOW }), undefined)).toMatchObject({
      reason: 'Preempted',
      message: 'Others came. The next start is due at 2026-01-01T00:30:05.000Z.',
    });
  });
});
