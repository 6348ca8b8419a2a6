import type { PersistentVolumeClaim } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { DISK_ANNOTATION, diskNameOf } from '../../../resources/pod/disk.ts';
import type { Ending } from './endings.ts';
import type { Observed } from './observed.ts';

type Seen = Pick<GpuInstance, 'metadata' | 'status'>;

/** Whether the instance says that it had a disk, and had no start since it was made: a backup brought it back. */
function isRestored({ metadata, status }: Seen): boolean {
  const isNew = (status?.incarnation ?? 0) === 0 && status?.ending?.reason !== 'DiskLost';
  return isNew && metadata.annotations?.[DISK_ANNOTATION] === diskNameOf({ metadata });
}

/**
 * Why an instance that has no disk must not start on a new one: it had one, with files on it. Undefined when it had none,
 * and when its owner asks for a start although the disk is lost.
 */
export function lossOf(instance: Seen): Ending | undefined {
  if (instance.status?.disk === undefined && !isRestored(instance)) return undefined;
  const name = diskNameOf(instance);
  const message = `The disk of this instance, PersistentVolumeClaim ${name}, is not there: it was deleted, or a backup has not brought it back yet. When it comes back, the instance uses it again. A start that you ask for makes a new, empty disk.`;
  return { reason: 'DiskLost', message };
}

/** The loss of the disk of an instance that is off: it was told, or is seen now. */
export function lossSeen({ instance, disk }: Pick<Observed, 'instance' | 'disk'>): Ending | undefined {
  const { claim, ending } = instance.status ?? {};
  if (claim !== undefined || disk !== undefined) return undefined;
  return ending?.reason === 'DiskLost' ? { reason: 'DiskLost', message: ending.message } : lossOf(instance);
}

/** The instance without an ending for the loss of its disk, once the disk is there again. */
export function withDiskBack(instance: GpuInstance, disk: PersistentVolumeClaim | undefined): GpuInstance {
  const { ending, ...status } = instance.status ?? {};
  const isBack = disk !== undefined && disk.metadata.deletionTimestamp === undefined;
  return ending?.reason === 'DiskLost' && isBack ? { ...instance, status } : instance;
}
