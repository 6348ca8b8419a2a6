import { NotFoundError } from '../../../kube/errors.ts';
import { type KubeObject, type ObjectRef, type Pod, PODS, type ResourceType } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Run } from './run.ts';
import { controllerUidOf, instanceUidsOf } from '../../../resources/pod/owner.ts';
import type { Step } from '../decide/plan.ts';

// What cannot be taken back, and what a condition of the write does not protect: on a view of the past a pod would be
// made or deleted that has nothing to do with the start of now (Sieve's stale states).
const IRREVOCABLE: ReadonlySet<Step['do']> = new Set(['createPod', 'end', 'deletePods', 'release', 'deleteInstance']);

/** Whether a step must rest on what the API server itself has, not on a cache that may be behind. */
export function mustBeCertain(step: Step): boolean {
  return IRREVOCABLE.has(step.do);
}

export interface LiveView {
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

/** Whether a pod belongs to an instance: it names it, or its status names a pod that has lost its owner. */
export function isPodOf({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>, pod: Pod): boolean {
  if (instanceUidsOf(pod).includes(metadata.uid ?? '')) return true;
  return pod.metadata.uid === status?.podUid && controllerUidOf(pod) === undefined;
}

/**
 * The instance and the pod of its current start as they are now, with the other pods that the cache shows. Undefined when
 * the instance that was meant is gone.
 */
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
