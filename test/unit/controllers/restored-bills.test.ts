import { expect, test } from 'vitest';
import { usageRecords } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { Bills } from '../../../src/ledger/bills.ts';
import type { Billed } from '../../../src/ledger/report.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { USAGE_RECORDS } from '../../../src/resources/usage-record.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

// A backup of the objects, with the status, of an instance that had one start behind it and ran its second.

const at = (hour: number): string => new Date(Date.UTC(2025, 11, 31, hour)).toISOString();
const start = (number: number, from: number, to: number): Interval => ({
  start: number,
  from: at(from),
  to: at(to),
  product: 'A100',
  gpuCount: 1,
  currency: 'USD',
  gpuSeconds: (to - from) * 3600,
  cost: `${to - from}.00`,
  pricePerHour: '1.00',
});
const SAVED: GpuInstanceStatus = {
  uid: 'uid-before',
  claim: claimOn('n', { grantedAt: at(3), byPreemption: true }),
  incarnation: 2,
  podName: 'one-2',
  podUid: 'pod-2',
  intervals: [start(1, 0, 2)],
  stages: { accepted: at(0), claimed: at(3), started: at(3), ready: at(3) },
};

/** What is billed after the restored instance, made again at midnight, has gone on and was deleted. */
async function billedAfter(recorded: readonly Interval[]): Promise<Pick<Billed, 'uid' | 'interval'>[]> {
  const world = controllerWorld();
  const before = gpuInstance('one', {}, { ...SAVED, intervals: [...recorded] });
  const { claim: _claim, ...status } = before.status ?? {};
  const gone: GpuInstance = { ...before, metadata: { ...before.metadata, uid: 'uid-before' }, status };
  const records = recorded.length === 0 ? [] : usageRecords(gone, world.clock.now());
  for (const record of records) await world.deps.client.create(USAGE_RECORDS, record);
  world.instances.upsert(held(gpuInstance('one', {}, SAVED)));
  await world.clock.advance(60_000);
  await world.reconcile('one');
  const now = world.instances.store.get('default/one') ?? expect.unreachable();
  expect(now.status?.uid).toBe('uid-one');
  const all: Billed[] = [];
  const bills = new Bills([now], world.clock.now(), (billed) => all.push(billed));
  for (const record of records) bills.addRecord(record);
  bills.addUnrecorded();
  return all.map(({ uid, interval }) => ({ uid, interval })).toSorted((a, b) => a.interval.start - b.interval.start);
}

test('starts that a record of the instance of before has are billed once, the one that ran then included', async () => {
  const recorded = [start(1, 0, 2), start(2, 3, 20)];
  const billed = await billedAfter(recorded);
  expect(billed.map(({ uid, interval }) => [uid, interval.start, interval.cost])).toEqual([
    ['uid-before', 1, '2.00'],
    ['uid-before', 2, '17.00'],
  ]);
});

test('starts that no record has keep their bill, and nothing is billed since the instance is back', async () => {
  const billed = await billedAfter([]);
  expect(billed.map(({ uid, interval }) => [uid, interval.start, interval.from, interval.to])).toEqual([
    ['uid-one', 1, at(0), at(2)],
    ['uid-one', 2, at(3), '2026-01-01T00:00:00.000Z'],
  ]);
});

test('the status of an earlier release, which has no uid, and one of its own are taken as they are', async () => {
  for (const uid of [undefined, 'uid-one']) {
    const world = controllerWorld();
    const { uid: _uid, ...saved } = SAVED;
    world.instances.upsert(held(gpuInstance('one', { powerState: 'Stopped' }, { ...saved, ...(uid && { uid }) })));
    await world.reconcile('one');
    expect(world.instances.store.get('default/one')?.status?.intervals).toHaveLength(2);
  }
});
