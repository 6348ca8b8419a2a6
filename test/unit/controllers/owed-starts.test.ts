import { describe, expect, test } from 'vitest';
import { ENDING_REASONS, endingOf, isOwed } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { withoutDiskNode, withoutPlace } from '../../../src/controllers/gpu-instance/decide/place.ts';
import type { RefusalReason } from '../../../src/inventory/grant.ts';
import { fold } from '../../../src/resources/history-fold.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState, startHash } from '../../../src/resources/instances/instance-state.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

// What the default of a way in says of a start that nobody asked for: nothing.

const AT = '2026-01-01T00:00:00Z';
const FAIL = { gpu: { count: 8 }, onNoCapacity: 'Fail', type: 'Interruptible' } as const;
const REFUSALS: RefusalReason[] = ['NoCapacity', 'OfferNotFound', 'DiskTooLarge'];

function ended(reason: string, over: { startHash?: undefined; generation?: number } = {}): GpuInstance {
  const instance = gpuInstance('one', FAIL);
  const ending = { reason, message: 'It ended', at: AT, generation: 1, startHash: startHash(instance.spec), ...over };
  return held({ ...instance, status: { incarnation: 1, ending } });
}

const isStop = (reason: string): boolean => endingOf(ended(reason).status)?.rule.next === 'stop';
const OWED = ENDING_REASONS.filter((reason) => !isStop(reason));
const OVER = ENDING_REASONS.filter(isStop);

/** The one node is taken by another. */
function fullWorld(instance: GpuInstance) {
  const world = controllerWorld();
  const owner = gpuInstance('owner', { gpu: { count: 8 } }, { claim: claimOn('n', { gpuCount: 8 }) });
  for (const one of [held(owner), instance]) world.instances.upsert(one);
  const stored = (): GpuInstance => world.instances.store.get('default/one') ?? instance;
  return { ...world, stored, free: () => world.instances.remove(held(owner)) };
}

describe.each(OWED)('after %s', (reason) => {
  test('the next start waits, and comes by itself when there is room', async () => {
    const world = fullWorld(ended(reason));
    await world.reconcile('one');
    const { state } = instanceState(world.stored());
    expect(['pending', 'interrupted']).toContain(state);
    expect(instanceState(world.stored()).message).toMatch(/^It ended\. No place for 8 x GPU is free\./);
    expect(world.stored().status?.ending?.reason).toBe(reason);
    expect(world.line.failFast()).toEqual([]);
    const { entries } = fold(undefined, world.stored(), { gone: false, now: Date.parse(AT) });
    expect(entries.map((entry) => entry.reason)).toContain(reason);
    world.free();
    await world.reconcile('one');
    expect(world.stored().status).toMatchObject({ claim: { node: 'n' }, incarnation: 2 });
  });

  test.each(REFUSALS)('it does not end for %s', (refusal) => {
    expect(withoutPlace(ended(reason), refusal, 'none')).toMatchObject({ waiting: { reason: 'WaitingForCapacity' } });
  });

  test('it waits for the node of its disk', () => {
    expect(withoutDiskNode(ended(reason))).toMatchObject({ waiting: { reason: 'DiskNodeGone' } });
  });

  test('an owner who switches the instance off and on asks for a start', () => {
    const again = ended(reason, { startHash: undefined, generation: 0 });
    expect(isOwed(again)).toBe(false);
    expect(withoutPlace(again, 'NoCapacity', 'none')).toMatchObject({ refused: { reason: 'NoCapacity' } });
  });
});

test('one that was preempted is found by what it waits for too', async () => {
  const world = controllerWorld();
  world.instances.upsert(ended('Preempted'));
  const hard = { 'requests.nvidia.com/gpu': '0' };
  world.quotas.upsert({ metadata: { name: 'q', namespace: 'default' }, spec: { hard }, status: { hard, used: hard } });
  await world.reconcile('one');
  const seen = world.instances.store.by('reason', 'QuotaExceeded').map(({ metadata }) => metadata.name);
  expect(seen).toEqual(['one']);
  expect(world.instances.store.by('reason', 'Preempted')).toHaveLength(1);
});

test.each(OVER)(
  'after %s Berth owes nothing: a start that is asked for then fails as spec.onNoCapacity says',
  (reason) => {
    expect(isOwed(ended(reason))).toBe(false);
    expect(withoutPlace(ended(reason), 'NoCapacity', 'none')).toMatchObject({ refused: { reason: 'NoCapacity' } });
  },
);

test('an edit, or a request to start, takes nothing from a start that Berth owes', () => {
  const preempted = ended('Preempted', { generation: 0 });
  const asked = { ...preempted, spec: { ...preempted.spec, image: 'other:1', startRequest: 'now' } };
  expect(withoutPlace(asked, 'NoCapacity', 'none')).toMatchObject({ waiting: { reason: 'WaitingForCapacity' } });
});

test('a first start that was asked for fails', () => {
  expect(withoutPlace(gpuInstance('one', FAIL), 'NoCapacity', 'none')).toMatchObject({ refused: {} });
});

// A place is free for it by its size. If it waited for a larger disk, nobody behind it would ever have a turn.
test('one that was refused before its first start, and whose offer has less disk by now, holds up nobody', async () => {
  const spec = { offerDiskSpace: 1_000_000, onNoCapacity: 'Queue' } as const;
  const refused = gpuInstance('one', spec);
  const ending = {
    reason: 'QuotaExceeded',
    message: 'full',
    at: AT,
    generation: 1,
    startHash: startHash(refused.spec),
  };
  const world = controllerWorld();
  world.instances.upsert(held({ ...refused, status: { ending } }));
  world.instances.upsert(held(gpuInstance('two')));
  await world.reconcile('one');
  await world.reconcile('two');
  const status = (name: string) => world.instances.store.get(`default/${name}`)?.status;
  expect(status('one')?.ending?.reason).toBe('OfferChanged');
  expect(status('two')?.claim).toMatchObject({ node: 'n' });
});
