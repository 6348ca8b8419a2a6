import type { KubeClient } from '../../src/kube/client/client.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../src/resources/instances/instance-state.ts';
import { waitFor } from './wait-for.ts';

/** The instance, once it runs. */
export function runningInstance(
  { client, name: namespace }: { client: KubeClient; name: string },
  name: string,
  ms: number,
): Promise<GpuInstance> {
  return waitFor(
    `${name} to run`,
    async () => {
      const instance = await client.get(GPU_INSTANCES, { namespace, name });
      return instanceState(instance).state === 'running' && instance;
    },
    ms,
  );
}
