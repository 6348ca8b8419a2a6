import { ConflictError, ForbiddenError, InvalidError, NotFoundError } from '../../../kube/errors.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { keyOf, type KubeObject, PERSISTENT_VOLUME_CLAIMS, PODS, type ResourceType } from '../../../kube/types.ts';
import { instanceUidsOf } from '../../../resources/pod/owner.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Run } from './run.ts';
import { diskNameOf } from '../decide/names.ts';
import type { Observed } from '../decide/observed.ts';
import { repairPatch } from '../decide/pod/repair-patch.ts';

/** How soon to try again after a conflict: the event of the other write need not name the instance. */
const AGAIN_MS = 1_000;

/** Errors that are about the child alone: what another writer did to it must not stop the instance. */
const REFUSALS = [ForbiddenError, InvalidError, NotFoundError, ConflictError];

interface Repaired<T> {
  child: T;
  hasConflict: boolean;
}

async function repairChild<T extends KubeObject>(
  run: Run,
  instance: GpuInstance,
  { type, store, child }: { type: ResourceType<T>; store: ReadStore<T>; child: T },
): Promise<Repaired<T>> {
  const patch = repairPatch(instance, child);
  if (patch === undefined) return { child, hasConflict: false };
  const { log, signal } = run.context;
  const { namespace, name } = child.metadata;
  const object = { kind: type.kind, namespace, name };
  log.info(object, 'Restoring the owner of an object');
  try {
    const repaired = await run.deps.client.patch(type, { namespace, name }, patch, { type: 'merge', signal });
    run.deps.fence.wrote(run.key, store, repaired);
    return { child: repaired, hasConflict: false };
  } catch (error) {
    if (!REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    log.warn({ err: error, ...object }, 'The owner of an object was not restored; going on without it');
    return { child, hasConflict: error instanceof ConflictError };
  }
}

/** Restores the owners and labels that other writers removed. `repairAfterMs` is set when another try may succeed. */
export async function repair(
  run: Run,
  observed: Observed,
): Promise<{ observed: Observed; repairAfterMs: number | undefined }> {
  const { instance } = observed;
  const { namespace, uid = '' } = instance.metadata;
  const { disks, pods } = run.deps.stores;
  const results: Repaired<KubeObject>[] = [];
  const disk = disks.get(keyOf({ namespace, name: diskNameOf(instance) }));
  if (disk !== undefined && instanceUidsOf(disk).includes(uid)) {
    results.push(await repairChild(run, instance, { type: PERSISTENT_VOLUME_CLAIMS, store: disks, child: disk }));
  }
  const own: Observed['pods'][number][] = [];
  for (const child of observed.pods) {
    const result = await repairChild(run, instance, { type: PODS, store: pods, child });
    results.push(result);
    own.push(result.child);
  }
  const pod = own.find(({ metadata }) => metadata.name === instance.status?.podName);
  const repairAfterMs = results.some(({ hasConflict }) => hasConflict) ? AGAIN_MS : undefined;
  return { observed: { ...observed, pods: own, pod }, repairAfterMs };
}
