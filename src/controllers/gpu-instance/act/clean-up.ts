import { everyObject } from '../../../kube/client/every.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import {
  AlreadyExistsError,
  ConflictError,
  isNamespaceAbsent,
  isNamespaceTerminating,
  NotFoundError,
} from '../../../kube/errors.ts';
import { keyOf, PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim, refOf } from '../../../kube/types.ts';
import { FINALIZER } from '../../../resources/cleanup.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { meterEnded } from '../../../resources/instances/meter.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../resources/usage-record.ts';
import { keepHistory, keepLateHistory } from './keep-history.ts';
import { podsOf, whereOf } from './observe.ts';
import { leaveLines, type Run } from './run.ts';
import { othersThanInstances } from '../decide/pod/repair-patch.ts';
import { withSilences } from '../decide/silences.ts';
import { closedBill, usageRecords } from '../decide/usage.ts';
import { DISK_POLICY_LABEL, diskNameOf, isAssigned, isDiskOf, RETAINED_LABEL } from '../../../resources/pod/disk.ts';
import { INSTANCE_UID_LABEL } from '../../../resources/pod/owner.ts';
import { deletePods, writeFinalizers } from './writes.ts';

/** Takes the marks of instances off a disk, and says from whom it was kept. It stays. */
async function keepDisk(run: Run, disk: PersistentVolumeClaim, labels: Record<string, string | null>): Promise<void> {
  const { namespace, name, uid, resourceVersion } = disk.metadata;
  const ownerReferences = othersThanInstances(disk);
  // Other marks than those that were seen: another instance may have taken the disk over.
  const patch = { metadata: { uid, resourceVersion, ownerReferences, labels } };
  const options = { type: 'merge', signal: run.context.signal } as const;
  await run.deps.client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, patch, options);
}

/** Deletes the disk of an instance that its owner deleted, or takes the marks off: then the disk outlives the instance. */
async function releaseDisk(run: Run, instance: GpuInstance): Promise<void> {
  const { client } = run.deps;
  const { signal } = run.context;
  const { namespace, name } = instance.metadata;
  const ref = { namespace, name: diskNameOf(instance) };
  // From the API server: a disk that the cache does not show yet would be left behind for good.
  const disk = await findObject(client, PERSISTENT_VOLUME_CLAIMS, ref, { signal });
  if (disk === undefined || !isDiskOf(instance, disk) || disk.metadata.deletionTimestamp !== undefined) return;
  const { uid } = disk.metadata;
  if (instance.spec.diskPolicy === 'Delete') {
    await client.delete(PERSISTENT_VOLUME_CLAIMS, ref, { signal, ...(uid !== undefined && { uid }) });
    return;
  }
  if (disk.metadata.labels?.[RETAINED_LABEL] === name && !isAssigned(disk)) return;
  await keepDisk(run, disk, { [INSTANCE_UID_LABEL]: null, [DISK_POLICY_LABEL]: null, [RETAINED_LABEL]: name });
}

/**
 * Keeps a disk whose instance is not there: it went while another client took its finalizer, or a backup brought back
 * the disk alone. Nobody asked for its deletion here, whatever its labels say, so it waits for its instance.
 */
export async function keepOrphan(run: Run): Promise<void> {
  const { client, stores } = run.deps;
  const { log, signal } = run.context;
  const { namespace, name } = refOf(run.key);
  const disk = stores.disks.get(keyOf({ namespace, name: diskNameOf({ metadata: { name } }) }));
  if (disk === undefined || disk.metadata.deletionTimestamp !== undefined || !isAssigned(disk)) return;
  if (disk.metadata.labels?.[RETAINED_LABEL] === name || stores.instances.get(run.key) !== undefined) return;
  // The cache of instances may be behind the cache of disks.
  if ((await findObject(client, GPU_INSTANCES, { namespace, name }, { signal })) !== undefined) return;
  log.warn({ disk: disk.metadata.name }, 'Keeping a disk whose instance is not there; no owner asked to delete it');
  try {
    await keepDisk(run, disk, { [RETAINED_LABEL]: name });
  } catch (error) {
    // Somebody wrote to it, or deleted it: its event brings the run here again.
    if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
  }
}

async function writeUsageRecord({ deps, context }: Run, record: UsageRecord): Promise<void> {
  try {
    await deps.client.create(USAGE_RECORDS, record, { signal: context.signal });
  } catch (error) {
    if (error instanceof AlreadyExistsError) return;
    // Nothing can be created in a namespace that is being deleted, and its other bills go with it.
    if (!isNamespaceTerminating(error) && !isNamespaceAbsent(error)) throw error;
  }
}

/**
 * Writes what the ended starts cost to usage records, unless they are written already. Returns how many those are.
 * `goneAt`: milliseconds since the epoch.
 */
export async function writeUsageRecords(
  run: Run,
  instance: GpuInstance,
  goneAt = run.deps.clock.now(),
): Promise<number> {
  const records = usageRecords(instance, goneAt);
  for (const record of records) await writeUsageRecord(run, record);
  return records.length;
}

/** The starts that usage records have of the instance whose status a backup brought back. */
export async function recordedStarts({ deps, context }: Run, { metadata, status }: GpuInstance): Promise<Set<number>> {
  const starts = new Set<number>();
  const { namespace } = metadata;
  for await (const { spec } of everyObject(deps.client, USAGE_RECORDS, { namespace, signal: context.signal })) {
    if (spec.instanceUid !== status?.uid || spec.adjustment !== undefined) continue;
    for (const { start } of spec.intervals ?? []) starts.add(start);
  }
  return starts;
}

/** Whether the namespace of an instance that went was made after it: another tenant has it, and must not get its bill. */
function isOfTenantBefore(
  { deps }: Run,
  { metadata: { namespace = '', creationTimestamp = '' } }: GpuInstance,
): boolean {
  const made = deps.stores.namespaces.get(namespace)?.metadata.creationTimestamp;
  return made !== undefined && Date.parse(made) > Date.parse(creationTimestamp);
}

/**
 * Writes the usage, also of an open start, of instances of this key without a record. Deletes their pods. The bill ends
 * when the instance went, also when the record can be written hours later.
 */
export async function writeLateUsageRecords(run: Run): Promise<void> {
  const { deps, key, context } = run;
  for (const { instance, at } of deps.unrecorded.withKey(key)) {
    const pods = podsOf(deps, instance);
    // Its node may be silent since a moment that no status says any more.
    const { status = {}, metadata } = withSilences(instance, whereOf(deps, instance, pods), at);
    const end = status.ending === undefined ? at : meterEnded(status.ending);
    const final = { ...status, ...closedBill(status, end) };
    const keeps = !isOfTenantBefore(run, instance);
    if (keeps) {
      context.log.warn(
        { uid: metadata.uid, usage: final.usage },
        'Instance went without a usage record; writing it now',
      );
      await writeUsageRecords(run, { ...instance, status: final }, at);
    }
    // Kubernetes collects the pods too, but later. Until then nobody pays for their GPUs.
    await deletePods(run, pods);
    if (keeps) await keepLateHistory(run, instance);
    deps.unrecorded.forget(instance);
  }
}

/**
 * What is left for a deleted instance without a pod: disk, usage record, history, finalizer. Safe to repeat after a crash.
 * Returns what keeps the instance, and until when; undefined when nothing does.
 */
export async function cleanUp(run: Run, instance: GpuInstance): ReturnType<typeof keepHistory> {
  const { deps, key } = run;
  await releaseDisk(run, instance);
  await writeUsageRecords(run, instance);
  // Its GPUs and its disk are free, and its bill is closed: nobody pays for what is left to do.
  const kept = await keepHistory(run, instance);
  if (kept !== undefined) return kept;
  deps.unrecorded.markRecorded(instance);
  const finalizers = instance.metadata.finalizers?.filter((one) => one !== FINALIZER) ?? [];
  try {
    await writeFinalizers(run, instance, finalizers);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
  leaveLines(run);
  deps.inventory.forget(key);
  return undefined;
}
