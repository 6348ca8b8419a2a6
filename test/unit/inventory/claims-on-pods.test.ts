import { expect, test } from 'vitest';
import { shownIn } from '../../../src/kube/watch/resource-version.ts';
import { claimedPod, claimOn, gpuInstance, gpuNode, inventoryOf } from '../../support/inventory-world.ts';

test('a claim that is on its pod counts from its pod on, and until the pod is gone', () => {
  const x = gpuInstance('x');
  const pod = claimedPod(x, claimOn('a', { gpuCount: 8 }), '120');
  const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a')], instances: [x], claimOnPod: true });
  caches.pods.upsert(pod);
  expect([inventory.offers()[0]?.available, inventory.heldBy('default')[0]?.gpus]).toEqual([0, 8]);
  caches.pods.remove(pod);
  expect([inventory.offers()[0]?.available, inventory.heldBy('default')[0]?.gpus]).toEqual([8, undefined]);
});

test('a new inventory counts what is on pods, and none does where that is not guarded', () => {
  const x = gpuInstance('x');
  const world = { nodes: [gpuNode('a')], instances: [x], pods: [claimedPod(x, claimOn('a', { gpuCount: 8 }))] };
  const available = (claimOnPod: boolean) => inventoryOf({ ...world, claimOnPod }).inventory.offers()[0]?.available;
  expect([available(true), available(false)]).toEqual([0, 8]);
});

test('a claim that is on its pod is assumed until the cache of pods is as new as that pod', () => {
  const x = gpuInstance('x');
  const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a')], instances: [x], claimOnPod: true });
  const pod = claimedPod(x, claimOn('a', { gpuCount: 8 }), '120');
  inventory.assume(x, claimOn('a', { gpuCount: 8 }), { gb: 10, persistent: false });
  inventory.written('default/x', shownIn(caches.pods.store, pod));
  // Another version of the instance says nothing of it.
  caches.instances.upsert({ ...x, metadata: { ...x.metadata, resourceVersion: '130' } });
  expect(inventory.offers()[0]?.available).toBe(0);
  caches.pods.upsert(pod);
  caches.pods.remove(pod);
  expect(inventory.offers()[0]?.available).toBe(8);
});

test('a claim that is on its pod is assumed no more when its instance is gone', () => {
  const x = gpuInstance('x');
  const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a')], instances: [x], claimOnPod: true });
  inventory.assume(x, claimOn('a', { gpuCount: 8 }), { gb: 10, persistent: false });
  const pod = claimedPod(x, claimOn('a', { gpuCount: 8 }), '120');
  inventory.written('default/x', shownIn(caches.pods.store, pod));
  caches.instances.remove(x);
  expect(inventory.offers()[0]?.available).toBe(8);
});
