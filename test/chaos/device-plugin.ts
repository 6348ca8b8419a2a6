import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { NODES } from '../../src/kube/types.ts';

const GPU = 'nvidia.com/gpu';

/** Gives a node GPUs, and again after each restart of its kubelet, as a device plugin does. */
export async function keepGpus(client: KubeClient, name: string, count: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const { status } = await client.get(NODES, { name });
      if (status?.allocatable?.[GPU] !== String(count)) {
        const gpus = { [GPU]: String(count) };
        const body = { status: { capacity: gpus, allocatable: gpus } };
        await client.patch(NODES, { name }, body, { type: 'strategic', subresource: 'status' });
      }
    } catch {
      // The API server is down. The next round tries again.
    }
    await delay(500);
  }
}
