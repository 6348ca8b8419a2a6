import { instanceIndexKey } from '../../../caches/indexes.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { AlreadyExistsError, isNamespaceTerminating, NotFoundError } from '../../../kube/errors.ts';
import { keyOf, PERSISTENT_VOLUME_CLAIMS, refOf } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../resources/usage-record.ts';
import type { Run } from './run.ts';
import { DISK_POLICY_LABEL, diskNameOf, FINALIZER } from '../decide/names.ts';
import { closedBill, usageRecords } from '../decide/usage.ts';
import { controllerUidOf, INSTANCE_UID_LABEL, instanceUidsOf } from '../../../resources/pod/owner.ts';
import { deletePods, writeFinalizers } from './writes.ts';

/** On a disk that outlives its instance: the name of that instance. */
const RETAINED_LABEL = 'berth.dev/retained-from';

/** Deletes the disk of an instance, or takes the instance's marks off: then the disk outlives the instance. */
async function releaseDisk(
  run: Run,
  { namespace, name, uid = '' }: GpuInstance['metadata'],
  policy: string,
): Promise<void> {
  const { client } = run.deps;
  const { signal } = run.context;
  const ref = { namespace, name: diskNameOf({ metadata: { name } }) };
  // From the API server: a disk that the cache does not show yet would be left behind for good.
  const disk = await findObject(client, PERSISTENT_VOLUME_CLAIMS, ref, { signal });
  if (disk === undefined || !instanceUidsOf(disk).includes(uid)) return;
  const { metadata } = disk;
  if (policy === 'Delete') {
    const options = { signal, ...(metadata.uid !== undefined && { uid: metadata.uid }) };
    await client.delete(PERSISTENT_VOLUME_CLAIMS, ref, options);
    return;
  }
  const { resourceVersion } = metadata;
  const ownerReferences = metadata.ownerReferences?.filter((owner) => owner.uid !== controllerUidOf(disk)) ?? [];
  const labels = { [INSTANCE_UID_LABEL]: null, [DISK_POLICY_LABEL]: null, [RETAINED_LABEL]: name };
  const patch = { metadata: { uid: metadata.uid, resourceVersion, ownerReferences, labels } };
  await client.patch(PERSISTENT_VOLUME_CLAIMS, ref, patch, { type: 'merge', signal });
}

/** Sees to the disk of an instance that went before the controller did, as when another client took its finalizer. */
export async function releaseLostDisk(run: Run): Promise<void> {
  const { client, stores } = run.deps;
  const { namespace, name } = refOf(run.key);
  const disk = stores.disks.get(keyOf({ namespace, name: diskNameOf({ metadata: { name } }) }));
  const policy = disk?.metadata.labels?.[DISK_POLICY_LABEL];
  if (disk === undefined || policy === undefined || disk.metadata.deletionTimestamp !== undefined) return;
  const [uid] = instanceUidsOf(disk);
  if (uid === undefined || uid === stores.instances.get(run.key)?.metadata.uid) return;
  // The cache of instances may be behind the cache of disks.
  const live = await findObject(client, GPU_INSTANCES, { namespace, name }, { signal: run.context.signal });
  if (live?.metadata.uid === uid) return;
  run.context.log.warn({ disk: disk.metadata.name, uid, policy }, 'Instance went without its disk; releasing it now');
  await releaseDisk(run, { name, uid, ...(namespace !== undefined && { namespace }) }, policy);
}

async function writeUsageRecord({ deps, context }: Run, record: UsageRecord): Promise<void> {
  try {
    await deps.client.create(USAGE_RECORDS, record, { signal: context.signal });
  } catch (error) {
    // Nothing can be created in a namespace that is being deleted.
    if (error instanceof AlreadyExistsError || error instanceof NotFoundError) return;
    if (!isNamespaceTerminating(error)) throw error;
  }
}

/** Writes what the ended starts cost to usage records, unless they are written already. Returns how many those are. */
export async function writeUsageRecords(run: Run, instance: GpuInstance): Promise<number> {
  const records = usageRecords(instance, run.deps.clock.now());
  for (const record of records) await writeUsageRecord(run, record);
  return records.length;
}

/** Writes the usage, also of an open start, of instances of this key without a record. Deletes their pods. */
export async function writeLateUsageRecords(run: Run): Promise<void> {
  const { deps, key, context } = run;
  for (const instance of deps.unrecorded.withKey(key)) {
    const { status = {}, metadata } = instance;
    const end = status.ending === undefined ? deps.clock.now() : Date.parse(status.ending.at);
    const final = { ...status, ...closedBill(status, end) };
    context.log.warn({ uid: metadata.uid, usage: final.usage }, 'Instance went without a usage record; writing it now');
    await writeUsageRecords(run, { ...instance, status: final });
    // Kubernetes collects the pods too, but later. Until then nobody pays for their GPUs.
    const pods = deps.stores.pods.by('instance', instanceIndexKey(metadata.namespace, metadata.uid));
    await deletePods(run, pods);
    deps.unrecorded.forget(instance);
  }
}

/** What is left for a deleted instance without a pod: disk, usage record, finalizer. Safe to repeat after a crash. */
export async function cleanUp(run: Run, instance: GpuInstance): Promise<void> {
  const { deps, key } = run;
  await releaseDisk(run, instance.metadata, instance.spec.diskPolicy);
  await writeUsageRecords(run, instance);
  deps.unrecorded.markRecorded(instance);
  const finalizers = instance.metadata.finalizers?.filter((one) => one !== FINALIZER) ?? [];
  try {
    await writeFinalizers(run, instance, finalizers);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
  deps.line.remove(key);
  deps.inventory.forget(key);
}
