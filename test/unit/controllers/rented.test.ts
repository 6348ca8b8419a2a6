import { describe, expect, test } from 'vitest';
import { keptRented } from '../../../src/controllers/gpu-instance/decide/rented.ts';
import { requestOf } from '../../../src/controllers/gpu-instance/decide/place.ts';
import { releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import type { GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import { rentedOf } from '../../../src/resources/instances/rented.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { NOW, observed } from '../../support/instance-world.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';

const SSH = { host: '', port: 22 };
const GPUS = {
  product: A100,
  gpuCount: 4,
  isolation: 'whole',
  memoryMb: 81_920,
  simulated: false,
  pool: 'default',
  offerId: 7,
} as const;
const CLAIM = claimOn('n', { gpuCount: 4, offerId: 7 });

function rented(spec: Partial<GpuInstanceSpec>) {
  const instance = gpuInstance('one', spec, { claim: CLAIM, incarnation: 1, podName: 'one-1' });
  return { ...instance, status: statusOf(observed({ instance }), SSH) };
}

describe('what was rented', () => {
  test('is kept from the first claim on, also over its release', () => {
    const running = rented({ offerId: 7 });
    expect(running.status.rented?.gpus).toEqual(GPUS);
    const ending = { reason: 'Preempted', message: '', at: new Date(NOW).toISOString(), generation: 1 };
    const ended = { ...running, status: { ...running.status, ending } };
    const seen = endingOf(ended.status);
    expect(seen && releasedStatus(ended, seen, NOW).rented?.gpus).toEqual(GPUS);
    // One that was preempted while its claim was on the pod alone.
    const { rented: _none, ...bare } = ended.status;
    expect(seen && releasedStatus({ ...ended, status: bare }, seen, NOW).rented?.gpus).toEqual(GPUS);
  });

  test('is with the part of a GPU that a replica is', () => {
    const claim = { ...CLAIM, gpuCount: 1, isolation: 'time_sliced', gpuShare: '1/4' } as const;
    const kept = keptRented(gpuInstance('one', { offerId: 7 }, { claim })).rented;
    expect(kept?.gpus).toMatchObject({ isolation: 'time_sliced', gpuShare: '1/4' });
  });

  test('is what later starts ask for', () => {
    const { claim: _claim, ...status } = rented({ offerId: 7 }).status;
    const instance = gpuInstance('one', { offerId: 7 }, status);
    const seen = observed({ instance });
    const { settings } = seen;
    if (settings === undefined) throw new Error('no settings');
    const ceilings = { policies: [], images: [], gpus: [] } as never;
    expect(requestOf(seen, settings, { only: undefined, ceilings }).rented).toEqual(GPUS);
    const first = observed({ instance: gpuInstance('one', { offerId: 7 }) });
    expect(requestOf(first, settings, { only: undefined, ceilings }).rented).toBeUndefined();
  });

  test('stays what it was when a later start gets a place that is called otherwise', () => {
    const running = rented({ offerId: 7 });
    const claim = { ...CLAIM, offerId: 8, pool: 'premium', memoryMb: 81_900 };
    const later = { ...running, status: { ...running.status, claim } };
    expect(keptRented(later).rented?.gpus).toEqual(GPUS);
  });

  test('is forgotten when the owner asks for other GPUs', () => {
    const running = rented({});
    const other = { ...running, spec: { ...running.spec, gpu: { product: 'L4', count: 4 } } };
    const kept = keptRented(other);
    expect(rentedOf({ ...other, status: kept })).toBeUndefined();
    // By that the next start knows that its owner asks for others.
    expect(kept.rented).toEqual(running.status.rented);
    const { rented: _none, ...bare } = running.status;
    expect(keptRented({ ...other, status: bare })).toEqual({});
  });
});

describe('an instance whose offer is gone', () => {
  const OFFER = { offerId: 7, onNoCapacity: 'Fail' } as const;

  function world(pools = [gpuPool('premium', { sizes: [1, 2] })], node = gpuNode('n')) {
    const made = controllerWorld(undefined, undefined, { nodes: [node], pools });
    const stored = () => made.instances.store.get('default/one');
    return { ...made, stored };
  }

  test.each([
    ['stopped and started by its owner', 'Stopped'],
    ['preempted', 'Preempted'],
  ])('comes back in another pool, of other sizes and another memory label: %s', async (_name, reason) => {
    const { claim: _claim, ...status } = rented(OFFER).status;
    const ending = { reason, message: '', at: new Date(0).toISOString(), generation: 1 };
    const node = gpuNode('n', { labels: { 'nvidia.com/gpu.memory': '81559' } });
    const { instances, reconcile, stored } = world(undefined, node);
    instances.upsert(held(gpuInstance('one', OFFER, { ...status, incarnation: 1, ending })));
    await reconcile('one');
    expect(stored()?.status?.claim).toMatchObject({ node: 'n', gpuCount: 4, pool: 'premium', memoryMb: 81_559 });
    expect(stored()?.status?.rented?.gpus).toEqual(GPUS);
  });

  test('waits, and fails only where its owner asked for the start', async () => {
    const { claim: _claim, ...status } = rented(OFFER).status;
    const node = gpuNode('n', { labels: { 'nvidia.com/gpu.product': 'L4' } });
    for (const [reason, state] of [
      ['Preempted', 'interrupted'],
      ['PodDeleted', 'pending'],
      ['Stopped', 'failed'],
    ] as const) {
      const { instances, reconcile, stored } = world([], node);
      const ending = { reason, message: 'Said.', at: new Date(0).toISOString(), generation: 1 };
      instances.upsert(held(gpuInstance('one', OFFER, { ...status, incarnation: 1, ending })));
      await reconcile('one');
      const seen = stored();
      expect(seen && instanceState(seen)).toMatchObject({
        state,
        message: expect.stringContaining(`No node has 4 x ${A100} whole now, and the instance asks for no other GPUs.`),
      });
    }
  });

  test('is pending before its first start, and no failure that starts by itself', async () => {
    const { instances, reconcile, stored } = world();
    instances.upsert(held(gpuInstance('one', { offerId: 7 })));
    await reconcile('one');
    const seen = stored();
    expect(seen && instanceState(seen)).toMatchObject({ state: 'pending', reason: 'WaitingForOffer' });
    expect(seen?.status?.ending).toBeUndefined();
  });
});
