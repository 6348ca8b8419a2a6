import { ConflictError, ForbiddenError, InvalidError, NotFoundError } from '../../../kube/errors.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { type KubeObject, PERSISTENT_VOLUME_CLAIMS, PODS, type ResourceType } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { DISK_ANNOTATION } from '../../../resources/pod/disk.ts';
import type { WithStored } from './observe.ts';
import type { Run } from './run.ts';
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
    log.warn({ err: error, ...object }, 'Owner and labels of an object were not restored; continuing without them');
    return { child, hasConflict: error instanceof ConflictError };
  }
}

/**
 * Whether an instance is there and stays. Its cache may be behind that of the disks: a disk that an instance has let go
 * must not get its marks back. One that is let go after this look has another version than the patch asks for.
 */
async function isThere({ deps, context }: Run, { metadata }: GpuInstance): Promise<boolean> {
  const live = await findObject(deps.client, GPU_INSTANCES, metadata, { signal: context.signal });
  return live?.metadata.uid === metadata.uid && live?.metadata.deletionTimestamp === undefined;
}

/** Notes on the instance that it has a disk, where a backup of it finds that. */
async function noteDisk({ deps, key, context }: Run, { stored }: WithStored): Promise<void> {
  const { namespace, name, uid, annotations, deletionTimestamp } = stored.metadata;
  const disk = stored.status?.disk?.name;
  if (disk === undefined || annotations?.[DISK_ANNOTATION] === disk || deletionTimestamp !== undefined) return;
  const patch = { metadata: { uid, annotations: { [DISK_ANNOTATION]: disk } } };
  try {
    const options = { type: 'merge', signal: context.signal } as const;
    const noted = await deps.client.patch(GPU_INSTANCES, { namespace, name }, patch, options);
    deps.fence.wrote(key, deps.stores.instances, noted);
  } catch (error) {
    if (!REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    context.log.warn({ err: error }, 'The disk was not noted on its instance; continuing without it');
  }
}

/** Restores owners and labels that other writers changed. `repairAfterMs` is set when another try may succeed. */
export async function repair(
  run: Run,
  observed: WithStored,
): Promise<{ observed: WithStored; repairAfterMs: number | undefined }> {
  const { instance } = observed;
  await noteDisk(run, observed);
  const { disks, pods } = run.deps.stores;
  const results: Repaired<KubeObject>[] = [];
  const { disk } = observed;
  const missing = disk && diskRepair(instance, disk);
  if (disk !== undefined && missing !== undefined && (await isThere(run, instance))) {
    results.push(await repairChild(run, { type: PERSISTENT_VOLUME_CLAIMS, store: disks, child: disk }, missing));
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
