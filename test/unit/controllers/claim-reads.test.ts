import { expect, test } from 'vitest';
import { ClaimReads } from '../../../src/controllers/gpu-instance/act/claim-reads.ts';
import type { ListOptions } from '../../../src/kube/client/client.ts';
import type { KubeObject, ResourceType } from '../../../src/kube/types.ts';
import { claimedPod, claimOn, gpuInstance, gpuNode, inventoryOf } from '../../support/inventory-world.ts';

/** A tenant with many instances that wait, of which the last has its claim on a pod that no cache shows yet. */
function hugeTenant() {
  const instances = Array.from({ length: 200 }, (_, n) => gpuInstance(`i${n}`));
  const pods = instances.map((one, n) => {
    const pod = claimedPod(one, claimOn('a', { gpuCount: 8 }), '120');
    const { annotations: _claim, ...metadata } = pod.metadata;
    return n === instances.length - 1 ? pod : { ...pod, metadata };
  });
  const lists: ListOptions[] = [];
  const all: Record<string, KubeObject[]> = { Pod: pods, GPUInstance: instances };
  const list = <T extends KubeObject>({ kind }: ResourceType<T>, options: ListOptions = {}) => {
    lists.push(options);
    const { limit = Infinity, continue: from = '0' } = options;
    const end = Number(from) + limit;
    const items = (all[kind] ?? []).slice(Number(from), end) as T[];
    return Promise.resolve({ items, resourceVersion: '130', ...(end < 200 && { continue: String(end) }) });
  };
  return { instances, lists, client: { list } };
}

test('the claims of a tenant with many pods and instances are read in small pages, and none is missed', async () => {
  const { instances, lists, client } = hugeTenant();
  const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a')], instances, claimOnPod: true });
  const stores = { instances: caches.instances.store, pods: caches.pods.store };
  const reads = new ClaimReads({ client, inventory, stores, config: { claimOnPod: true } });
  await reads.of('default', new AbortController().signal);
  expect(inventory.heldBy('default').map(({ gpus }) => gpus)).toEqual([8]);
  expect(lists.map(({ limit }) => limit)).toEqual(Array.from({ length: 8 }, () => 50));
});
