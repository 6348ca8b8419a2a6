import { findObject } from '../../../kube/client/find-object.ts';
import { type Pod, PODS } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { firstPodOf, isBeforeFirstStart } from '../../../resources/pod/claim-on-pod.ts';
import { isPodOf } from '../decide/pod/pod-facts.ts';
import type { Run } from './run.ts';

interface LiveView {
  instance: GpuInstance;
  pods: readonly Pod[];
}

/** The pod that may bear the claim of an instance whose status has none. */
function claimBearer(instance: GpuInstance): string | undefined {
  return isBeforeFirstStart(instance) ? firstPodOf(instance) : undefined;
}

/** Instance and current pod from the API server, other pods from the cache; undefined when the instance is gone. */
export async function readLiveView(
  run: Run,
  cached: GpuInstance,
  cachedPods: readonly Pod[],
): Promise<LiveView | undefined> {
  const { client, config } = run.deps;
  const { signal } = run.context;
  const { namespace, name, uid } = cached.metadata;
  const instance = await findObject(client, GPU_INSTANCES, { namespace, name }, { signal });
  if (instance?.metadata.uid !== uid || instance === undefined) return undefined;
  const podName = instance.status?.podName ?? (config.claimOnPod ? claimBearer(instance) : undefined);
  if (podName === undefined) return { instance, pods: cachedPods };
  const pod = await findObject(client, PODS, { namespace, name: podName }, { signal });
  const others = cachedPods.filter(({ metadata }) => metadata.name !== podName);
  return { instance, pods: pod !== undefined && isPodOf(instance, pod) ? [...others, pod] : others };
}
