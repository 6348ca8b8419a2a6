import { parseQuantity } from '../../kube/quantity.ts';
import type { KubeObject, PersistentVolumeClaim } from '../../kube/types.ts';
import type { GpuInstance } from '../instances/gpu-instance.ts';
import { CLAIM_ANNOTATION, controllerUidOf, INSTANCE_LABEL, INSTANCE_UID_LABEL } from './owner.ts';

/** Label of a disk: what becomes of it without its instance, Delete or Retain. */
export const DISK_POLICY_LABEL = 'berth.dev/disk-policy';

/** Label of a disk that outlives its instance: the name of that instance. */
export const RETAINED_LABEL = 'berth.dev/retained-from';

/**
 * Annotation of an instance: the name of its disk. A backup brings it back without the status, and an instance that had a
 * disk must not start on a new one before its own is there.
 */
export const DISK_ANNOTATION = 'berth.dev/disk';

const SUFFIX = '-disk';

export function diskNameOf({ metadata }: Pick<GpuInstance, 'metadata'>): string {
  return `${metadata.name}${SUFFIX}`;
}

/** The name of the instance whose disk a PersistentVolumeClaim of this name would be. */
export function instanceNameOfDisk({ metadata }: KubeObject): string | undefined {
  return metadata.name.endsWith(SUFFIX) ? metadata.name.slice(0, -SUFFIX.length) : undefined;
}

function hasController({ metadata }: KubeObject): boolean {
  return metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false;
}

function hasForeignController({ metadata }: KubeObject): boolean {
  return (
    metadata.ownerReferences?.some(({ kind, controller }) => controller === true && kind !== 'GPUInstance') ?? false
  );
}

/** The uid of the instance that a disk names, by owner, as earlier releases wrote it, else by label. */
function instanceUidOfDisk(disk: KubeObject): string | undefined {
  return controllerUidOf(disk) ?? (hasController(disk) ? undefined : disk.metadata.labels?.[INSTANCE_UID_LABEL]);
}

/**
 * Whether a PersistentVolumeClaim with the name of an instance's disk is its disk. The record in the status decides.
 * Without a record it is the one that Berth made for this instance or that was given to it. One that Berth made for an
 * earlier instance of this name, as a backup brings it back, is taken over: no other instance can have its name.
 */
export function isDiskOf(
  { metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>,
  disk: KubeObject | undefined,
): boolean {
  if (disk === undefined || disk.metadata.name !== diskNameOf({ metadata })) return false;
  const { uid, labels = {}, deletionTimestamp } = disk.metadata;
  if (uid !== undefined && uid === status?.disk?.uid) return true;
  if (deletionTimestamp !== undefined || hasForeignController(disk)) return false;
  if (metadata.uid !== undefined && instanceUidOfDisk(disk) === metadata.uid) return true;
  // An instance that goes takes over nothing.
  if (metadata.deletionTimestamp !== undefined) return false;
  return labels[INSTANCE_LABEL] === metadata.name || labels[RETAINED_LABEL] === metadata.name;
}

/** Whether Berth made a disk for an instance, and did not let it go. */
export function isAssigned(disk: KubeObject): boolean {
  return disk.metadata.labels?.[DISK_POLICY_LABEL] !== undefined || instanceUidOfDisk(disk) !== undefined;
}

/**
 * Whether a disk was kept although it was to go with its instance: Berth did not see that instance go.
 * @param isThere whether its namespace has an instance of this name
 */
export function isOrphan(disk: KubeObject, isThere: (instance: string) => boolean): boolean {
  const name = instanceNameOfDisk(disk);
  return name !== undefined && disk.metadata.labels?.[DISK_POLICY_LABEL] === 'Delete' && !isThere(name);
}

/** Whether Berth made a disk, or took it for that of an instance: labels may be gone, what only the controller writes not. */
export function isOfBerth(disk: KubeObject): boolean {
  const { labels = {}, annotations = {} } = disk.metadata;
  const isMarked = annotations[CLAIM_ANNOTATION] !== undefined || labels[RETAINED_LABEL] !== undefined;
  return instanceNameOfDisk(disk) !== undefined && (isMarked || isAssigned(disk));
}

/**
 * Whether a disk stays although its instance is gone: its owner asked for that, or nobody saw the instance go.
 * @param isThere whether its namespace has an instance of this name
 */
export function isKept(disk: KubeObject, isThere: (instance: string) => boolean): boolean {
  if (disk.metadata.deletionTimestamp !== undefined || !isOfBerth(disk)) return false;
  return !isThere(instanceNameOfDisk(disk) ?? '');
}

/** A GB of a disk, as instances have it. */
export const BYTES_PER_GB = 2 ** 30;

/** The size that a disk asks for in GB as instances have it, rounded up. */
export function sizeGbOf({ spec }: Pick<PersistentVolumeClaim, 'spec'>): number {
  return Math.ceil((parseQuantity(spec?.resources?.requests?.['storage'] ?? '') ?? 0) / BYTES_PER_GB);
}
