import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { NODES } from '../../src/kube/types.ts';

const GPU = 'nvidia.com/gpu';

/** Registers GPUs with a node, and anew whenever its kubelet forgot them in a restart, as a device plugin does. */
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
      // The API server is away: again in a moment.
    }
    await delay(500);
  }
}
