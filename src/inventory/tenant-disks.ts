import { keyOf, type PersistentVolumeClaim } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { diskNameOf, isKept, isOfBerth, sizeGbOf } from '../resources/pod/disk.ts';
import { reservedFor } from './holdings.ts';
import type { Inventory } from './inventory.ts';

/** A disk that is kept although its instance is gone. */
interface KeptDisk {
  name: string;
  gb: number;
}

/** What the disks of a tenant take that outlast a stop. */
export interface DiskUse {
  /** All of them, with those that are being deleted and those that granted places are about to have. */
  gb: number;
  /** The largest first. */
  kept: readonly KeptDisk[];
}

interface Sources {
  disks: Pick<ReadStore<PersistentVolumeClaim>, 'by' | 'get'>;
  instances: Pick<ReadStore<GpuInstance>, 'by' | 'get'>;
}

/** The disks of a namespace that are kept although their instances are gone. */
export function keptDisks({ disks, instances }: Sources, namespace: string): KeptDisk[] {
  return disks
    .by('namespace', namespace)
    .filter((disk) => isKept(disk, (name) => instances.get(keyOf({ namespace, name })) !== undefined))
    .map((disk) => ({ name: disk.metadata.name, gb: sizeGbOf(disk) }))
    .toSorted((a, b) => b.gb - a.gb || (a.name < b.name ? -1 : 1));
}

/** GB of the disk that is to be made for an instance: it has its place, or others leave one for it. */
export function comingGb(instance: GpuInstance): number {
  const { claim, diskPersistent, diskGb = 0 } = instance.status ?? {};
  if (claim !== undefined) return diskPersistent === true ? diskGb : 0;
  return reservedFor(instance) === undefined ? 0 : diskGb;
}

/**
 * What the disks of a namespace take. A place that was granted counts before its disk is there, and before a cache shows
 * the grant: many requests at once must not exceed together what each would not.
 * @param except key of an instance whose own disk does not count as long as it is not there
 */
export function diskUse(
  sources: Sources,
  inventory: Pick<Inventory, 'assumedIn'>,
  namespace: string,
  except?: string,
): DiskUse {
  const { disks, instances } = sources;
  const there = disks.by('namespace', namespace).filter(isOfBerth);
  const made = new Set(there.map(({ metadata }) => metadata.name));
  const newest = [...instances.by('namespace', namespace), ...inventory.assumedIn(namespace)];
  const coming = new Map(
    newest.map((instance) => [keyOf(instance), made.has(diskNameOf(instance)) ? 0 : comingGb(instance)]),
  );
  if (except !== undefined) coming.delete(except);
  const sizes = [...there.map(sizeGbOf), ...coming.values()];
  return { gb: sizes.reduce((sum, gb) => sum + gb, 0), kept: keptDisks(sources, namespace) };
}
