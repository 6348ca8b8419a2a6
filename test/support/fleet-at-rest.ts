import { afterAll, inject } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { createKubeClient } from '../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../src/kube/config/config.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import { keyOf, type Node, NODES, PODS } from '../../src/kube/types.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { waitFor } from '../../tools/lib/wait.ts';

/** Longer than a busy node takes to end its pods. */
const REST_MS = 90_000;

/** Whether the real node offers fewer GPUs than it has. */
function isSick({ metadata, status }: Node): boolean {
  const { capacity = {}, allocatable = {} } = status ?? {};
  return metadata.name === REAL_NODE && capacity['nvidia.com/gpu'] !== allocatable['nvidia.com/gpu'];
}

/** Ends instances, whose controller may have ended before them, and pods. Returns the names of what is not gone yet. */
async function clear(client: KubeClient): Promise<string[]> {
  const [instances, pods, nodes] = await Promise.all([
    client.list(GPU_INSTANCES),
    client.list(PODS),
    client.list(NODES),
  ]);
  for (const { metadata } of instances.items) {
    await client.patch(GPU_INSTANCES, metadata, { metadata: { finalizers: null } }, { type: 'merge' });
    if (metadata.deletionTimestamp === undefined) await client.delete(GPU_INSTANCES, metadata);
  }
  for (const { metadata } of pods.items) {
    // What runs still ends: the kubelet deletes the pod when it has.
    if (metadata.finalizers !== undefined)
      await client.patch(PODS, metadata, { metadata: { finalizers: null } }, { type: 'merge' });
    if (metadata.deletionTimestamp === undefined || (metadata.deletionGracePeriodSeconds ?? 0) > 1)
      await client.delete(PODS, metadata, { gracePeriodSeconds: 1 });
  }
  return [
    ...instances.items.map((one) => `instance ${keyOf(one)}`),
    ...pods.items.map((one) => `pod ${keyOf(one)}`),
    ...nodes.items.filter(isSick).map(({ metadata }) => `node ${metadata.name} without all its GPUs`),
  ];
}

// A setup file: the next file on this cluster meets no instance and no pod of this one, so it need not wait for them.
afterAll(async () => {
  const { kubeconfig } = inject('cluster');
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  let left: string[] = [];
  const isAtRest = async (): Promise<boolean> => {
    try {
      left = await clear(client);
    } catch (error) {
      // What was seen may be gone by now.
      if (!(error instanceof NotFoundError)) throw error;
    }
    return left.length === 0;
  };
  const rested = await waitFor(isAtRest, { timeout: REST_MS, interval: 200 });
  await client.close();
  if (rested !== true) throw new Error(`The cluster is not at rest: ${left.join(', ')}`);
}, REST_MS + 10_000);
