import { NotFoundError } from '../../../kube/errors.ts';
import { type KubeObject, type ObjectRef, type Pod, PODS, type ResourceType } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/gpu-instance.ts';
import { isPodOf } from '../decide/pod/pod-facts.ts';
import type { Run } from './run.ts';

interface LiveView {
  instance: GpuInstance;
  pods: readonly Pod[];
}

async function read<T extends KubeObject>({ deps, context }: Run, type: ResourceType<T>, ref: ObjectRef) {
  try {
    return await deps.client.get(type, ref, { signal: context.signal });
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** Instance and current pod from the API server, other pods from the cache; undefined when the instance is gone. */
export async function readLiveView(
  run: Run,
  cached: GpuInstance,
  cachedPods: readonly Pod[],
): Promise<LiveView | undefined> {
  const { namespace, name, uid } = cached.metadata;
  const instance = await read(run, GPU_INSTANCES, { namespace, name });
  if (instance?.metadata.uid !== uid || instance === undefined) return undefined;
  const { podName } = instance.status ?? {};
  if (podName === undefined) return { instance, pods: cachedPods };
  const pod = await read(run, PODS, { namespace, name: podName });
  const others = cachedPods.filter(({ metadata }) => metadata.name !== podName);
  return { instance, pods: pod !== undefined && isPodOf(instance, pod) ? [...others, pod] : others };
}
