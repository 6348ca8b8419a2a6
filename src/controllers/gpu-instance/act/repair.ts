import { ConflictError, ForbiddenError, InvalidError, NotFoundError } from '../../../kube/errors.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { keyOf, type KubeObject, PERSISTENT_VOLUME_CLAIMS, PODS, type ResourceType } from '../../../kube/types.ts';
import { instanceUidsOf } from '../../../resources/pod/owner.ts';
import type { WithStored } from './observe.ts';
import type { Run } from './run.ts';
import { diskNameOf } from '../decide/names.ts';
import { diskRepair, podRepair } from '../decide/pod/repair-patch.ts';

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
  { type, store, child }: { type: ResourceType<T>; store: ReadStore<T>; child: T },
  patch: object | undefined,
): Promise<Repaired<T>> {
  if (patch === undefined) return { child, hasConflict: false };
  const { log, signal } = run.context;
  const { namespace, name } = child.metadata;
  const object = { kind: type.kind, namespace, name };
  log.info(object, 'Restoring owner and labels of an object');
  try {
    const repaired = await run.deps.client.patch(type, { namespace, name }, patch, { type: 'merge', signal });
    run.deps.fence.wrote(run.key, store, repaired);
    return { child: repaired, hasConflict: false };
  } catch (error) {
    if (!REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    log.warn({ err: error, ...object }, 'Owner and labels of an object were not restored; going on without them');
    return { child, hasConflict: error instanceof ConflictError };
  }
}

/** Restores owners and labels that other writers changed. `repairAfterMs` is set when another try may succeed. */
export async function repair(
  run: Run,
  observed: WithStored,
): Promise<{ observed: WithStored; repairAfterMs: number | undefined }> {
  const { instance } = observed;
  const { namespace, uid = '' } = instance.metadata;
  const { disks, pods } = run.deps.stores;
  const results: Repaired<KubeObject>[] = [];
  const disk = disks.get(keyOf({ namespace, name: diskNameOf(instance) }));
  if (disk !== undefined && instanceUidsOf(disk).includes(uid)) {
    const child = { type: PERSISTENT_VOLUME_CLAIMS, store: disks, child: disk };
    results.push(await repairChild(run, child, diskRepair(instance, disk)));
  }
  const own: WithStored['pods'][number][] = [];
  for (const child of observed.pods) {
    const result = await repairChild(run, { type: PODS, store: pods, child }, podRepair(instance, child));
    results.push(result);
    own.push(result.child);
  }
  const pod = own.find(({ metadata }) => metadata.name === instance.status?.podName);
  const repairAfterMs = results.some(({ hasConflict }) => hasConflict) ? AGAIN_MS : undefined;
  return { observed: { ...observed, pods: own, pod }, repairAfterMs };
}
