import { AlreadyExistsError, isNamespaceTerminating, NotFoundError } from '../../../kube/errors.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '../../../kube/types.ts';
import { INSTANCE_UID_LABEL } from '../../../resources/pod/owner.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../resources/usage-record.ts';
import type { Run } from './run.ts';
import { diskNameOf, FINALIZER, usageNameOf } from '../decide/names.ts';
import { controllerUidOf, instanceUidsOf } from '../../../resources/pod/owner.ts';
import { writeFinalizers } from './writes.ts';

/** On a disk that outlives its instance: whose it was. */
const RETAINED_LABEL = 'berth.dev/retained-from';

async function readDisk(run: Run, instance: GpuInstance): Promise<PersistentVolumeClaim | undefined> {
  const ref = { namespace: instance.metadata.namespace, name: diskNameOf(instance) };
  try {
    // Live: a disk that the cache does not show yet would be left behind for good.
    return await run.deps.client.get(PERSISTENT_VOLUME_CLAIMS, ref, { signal: run.context.signal });
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** Deletes the disk, or lets go of it so that it outlives the instance. */
async function settleDisk(run: Run, instance: GpuInstance): Promise<void> {
  const { client } = run.deps;
  const disk = await readDisk(run, instance);
  if (disk === undefined || !instanceUidsOf(disk).includes(instance.metadata.uid ?? '')) return;
  const { namespace, name, uid, resourceVersion } = disk.metadata;
  const { signal } = run.context;
  if (instance.spec.diskPolicy === 'Delete') {
    await client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { signal, ...(uid !== undefined && { uid }) });
    return;
  }
  const others = disk.metadata.ownerReferences?.filter((owner) => owner.uid !== controllerUidOf(disk)) ?? [];
  const labels = { [INSTANCE_UID_LABEL]: null, [RETAINED_LABEL]: instance.metadata.name };
  const metadata = { resourceVersion, ownerReferences: others, labels };
  await client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { metadata }, { type: 'merge', signal });
}

function usageRecord(instance: GpuInstance, now: number): UsageRecord {
  const { metadata, status = {} } = instance;
  const { usage, stages, lastProduct } = status;
  return {
    metadata: {
      name: usageNameOf(instance),
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
    },
    spec: {
      instance: metadata.name,
      instanceUid: metadata.uid ?? '',
      product: lastProduct?.product ?? '',
      gpuCount: lastProduct?.gpuCount ?? 0,
      gpuSeconds: usage?.gpuSeconds ?? 0,
      cost: usage?.cost ?? '0.00',
      currency: usage?.currency ?? '',
      ...(status.firstReady !== undefined && { startedAt: status.firstReady }),
      endedAt: stages?.stopped ?? new Date(now).toISOString(),
    },
  };
}

/** Writes what the instance has cost, once: the name of the record comes from the uid. */
export async function writeUsageRecord({ deps, context }: Run, instance: GpuInstance): Promise<void> {
  if ((instance.status?.incarnation ?? 0) === 0) return;
  try {
    await deps.client.create(USAGE_RECORDS, usageRecord(instance, deps.clock.now()), { signal: context.signal });
  } catch (error) {
    // In a namespace that is going away nothing can be made any more.
    if (error instanceof AlreadyExistsError || error instanceof NotFoundError) return;
    if (!isNamespaceTerminating(error)) throw error;
  }
}

/**
 * The last acts for a deleted instance without a pod: disk, usage record, finalizer. Each may be repeated after a crash;
 * the record's name comes from the uid, so there is one.
 */
export async function cleanUp(run: Run, instance: GpuInstance): Promise<void> {
  const { deps, key } = run;
  await settleDisk(run, instance);
  await writeUsageRecord(run, instance);
  deps.vanished.isBilled(instance);
  const finalizers = instance.metadata.finalizers?.filter((one) => one !== FINALIZER) ?? [];
  try {
    await writeFinalizers(run, instance, finalizers);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
  deps.line.remove(key);
  deps.inventory.forget(key);
}
