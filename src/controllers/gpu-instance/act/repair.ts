import { ConflictError, ForbiddenError, InvalidError, KubeError, NotFoundError } from '../../../kube/errors.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { type KubeObject, PERSISTENT_VOLUME_CLAIMS, type Pod, PODS, type ResourceType } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Run } from './run.ts';
import { repairPatch } from '../decide/pod/repair-patch.ts';
import { diskNameOf } from '../decide/names.ts';
import { instanceUidsOf } from '../../../resources/pod/owner.ts';

/** When to repair again what changed meanwhile: its event need not name the instance. */
const AGAIN_MS = 1_000;

/** The child as it is now, or why it could not be repaired. */
async function repairOne<T extends KubeObject>(
  run: Run,
  type: ResourceType<T>,
  instance: GpuInstance,
  child: T,
): Promise<T | KubeError> {
  const patch = repairPatch(instance, child);
  if (patch === undefined) return child;
  const { log, signal } = run.context;
  const { namespace, name } = child.metadata;
  log.info({ kind: type.kind, namespace, name }, 'Giving an object its owner back');
  try {
    return await run.deps.client.patch(type, { namespace, name }, patch, { type: 'merge', signal });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    log.warn({ err: error, kind: type.kind, namespace, name }, 'An object does not get its owner back; going on');
    return error;
  }
}

/** Errors that are about the child alone: a mark that somebody put on it must not stop the instance. */
function isRefusal(error: unknown): error is KubeError {
  return [ForbiddenError, InvalidError, NotFoundError, ConflictError].some((type) => error instanceof type);
}

export interface Repaired {
  pods: Pod[];
  /** Set when something is left to repair that another try may heal; milliseconds. */
  againAfterMs: number | undefined;
}

/**
 * Restores owner references and labels that somebody removed from the pods and the disk of an instance. What the API
 * server does not let it repair stays as it is.
 */
export async function repair(run: Run, instance: GpuInstance, pods: readonly Pod[]): Promise<Repaired> {
  const { deps, key } = run;
  let againAfterMs: number | undefined;
  const repaired = async <T extends KubeObject>(type: ResourceType<T>, store: ReadStore<T>, child: T): Promise<T> => {
    const fixed = await repairOne(run, type, instance, child);
    if (fixed instanceof KubeError) {
      if (fixed instanceof ConflictError) againAfterMs = AGAIN_MS;
      return child;
    }
    if (fixed !== child) deps.fence.wrote(key, store, fixed);
    return fixed;
  };
  const disk = deps.stores.disks.get(`${instance.metadata.namespace}/${diskNameOf(instance)}`);
  if (disk !== undefined && instanceUidsOf(disk).includes(instance.metadata.uid ?? '')) {
    await repaired(PERSISTENT_VOLUME_CLAIMS, deps.stores.disks, disk);
  }
  const own: Pod[] = [];
  for (const pod of pods) own.push(await repaired(PODS, deps.stores.pods, pod));
  return { pods: own, againAfterMs };
}
