import { expect, test } from 'vitest';
import { InstanceEvents } from '../../../src/http/features/instances/instance-events.ts';
import type { StreamEvent } from '../../../src/http/interface/events/event-stream.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { claimingCache } from '../../support/claiming-cache.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { claimedPod, claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { presenterOf } from '../../support/instance-presenter.ts';

const ONE = gpuInstance('one');
const CLAIM = claimOn('n', { pricePerHour: '2.50' });
const POD = claimedPod(ONE, CLAIM);

function world(isOn = true) {
  const pods = cacheOf<Pod>();
  const instances = isOn ? claimingCache(pods, [ONE]) : cacheOf<GpuInstance>([ONE], INDEXES.instances);
  const presenter = presenterOf(instances.store);
  const events = new InstanceEvents(instances.store, presenter, (namespace) => namespace);
  const sent: StreamEvent[] = [];
  events.follow({ namespace: 'default', name: 'one' }, undefined, (event) => sent.push(event));
  const states = () => sent.map(({ data }) => (JSON.parse(data) as { state: string }).state);
  return { instances, pods, presenter, sent, states };
}

test('the record of an instance has the claim that is on its pod', () => {
  const { pods, presenter } = world();
  const before = presenter.present(ONE);
  pods.upsert(POD);
  expect(presenter.record(ONE)).toMatchObject({ state: 'scheduling', node: 'n', price_per_hour: '2.50' });
  expect(presenter.present(ONE).etag).not.toBe(before.etag);
  pods.remove(POD);
  expect(presenter.record(ONE)).toMatchObject({ state: 'pending', node: null });
});

test('a follower is told once that a claim came, and that it went', () => {
  const { pods, states, sent, instances } = world();
  pods.upsert(POD);
  pods.upsert({ ...POD, metadata: { ...POD.metadata, resourceVersion: '2' }, status: { phase: 'Running' } });
  expect(states()).toEqual(['pending', 'scheduling']);
  // No id that another replica could not go on from.
  expect(sent.map(({ id }) => id)).toEqual([instances.store.resourceVersion, instances.store.resourceVersion]);
  pods.remove(POD);
  expect(states()).toEqual(['pending', 'scheduling', 'pending']);
});

test('where others may write the annotation it is no claim', () => {
  const { pods, presenter, states } = world(false);
  pods.upsert(POD);
  expect(presenter.record(ONE)).toMatchObject({ state: 'pending', node: null });
  expect(states()).toEqual(['pending']);
});
