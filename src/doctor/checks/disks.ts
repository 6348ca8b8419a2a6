import { keyOf, type PersistentVolumeClaim } from '../../kube/types.ts';
import { DISK_POLICY_LABEL, isKept, isOrphan, RETAINED_LABEL, sizeGbOf } from '../../resources/pod/disk.ts';
import type { TenantLimit } from '../../resources/tenants/tenant-limit.ts';
import { check, named, type Problem } from '../finding.ts';

function namesOf(disks: readonly PersistentVolumeClaim[]): string[] {
  return disks.map(({ metadata: { namespace, name } }) => `${namespace}/persistentvolumeclaim/${name}`);
}

/** How many of the disks each tenant has, and how large they are, the largest sum first. */
function countsOf(disks: readonly PersistentVolumeClaim[]): string {
  const tenants = [...Map.groupBy(disks, ({ metadata }) => metadata.namespace ?? '')].map(([tenant, some]) => ({
    tenant,
    count: some.length,
    gb: some.reduce((sum, disk) => sum + sizeGbOf(disk), 0),
  }));
  const largest = tenants.toSorted((a, b) => b.gb - a.gb);
  return named(largest.map(({ tenant, count, gb }) => `${tenant} (${count} with ${gb} GB)`));
}

function orphaned(disks: readonly PersistentVolumeClaim[]): Problem[] {
  if (disks.length === 0) return [];
  return [
    {
      severity: 'warning',
      reason: 'DiskWithoutInstance',
      objects: namesOf(disks),
      message: `The instances of disks ${named(disks.map(keyOf))} are not there, and Berth did not see their owners delete them: ${countsOf(disks)}.`,
      why: 'The disks hold storage. An instance of the same name gets its disk back, for example from a backup.',
      remedy: `kubectl get pvc --all-namespaces -l ${RETAINED_LABEL},${DISK_POLICY_LABEL}=Delete   # delete those that nobody needs`,
    },
  ];
}

/** What tenants keep whose disks no ceiling bounds: each deletion of an instance may add to it. */
function unbounded(kept: readonly PersistentVolumeClaim[], limits: readonly TenantLimit[]): Problem[] {
  const bounded = new Set(
    limits.filter(({ spec }) => spec?.diskGb !== undefined).map(({ metadata }) => metadata.namespace),
  );
  const free = kept.filter(({ metadata }) => !bounded.has(metadata.namespace));
  if (free.length === 0) return [];
  return [
    {
      severity: 'warning',
      reason: 'KeptDisksUnbounded',
      objects: namesOf(free),
      message: `Tenants keep disks of deleted instances, and no ceiling bounds them: ${countsOf(free)}.`,
      why: 'The disks hold storage that nobody pays for, and more come with each instance that is deleted with diskPolicy: Retain.',
      remedy: `kubectl get pvc --all-namespaces -l ${RETAINED_LABEL}   # delete those that nobody needs, and set diskGb in a TenantPolicy`,
    },
  ];
}

export const disks = check({
  name: 'disks',
  title: 'Every disk has its instance, or its owner asked to keep it and a ceiling bounds such disks',
  needs: ['keptDisks', 'instances', 'tenantLimits'],
  find({ keptDisks, instances, tenantLimits }): Problem[] {
    const there = new Set(instances.map(keyOf));
    const isThere = (disk: PersistentVolumeClaim) => (name: string) =>
      there.has(keyOf({ namespace: disk.metadata.namespace, name }));
    const orphans = keptDisks.filter((disk) => isOrphan(disk, isThere(disk)));
    const kept = keptDisks.filter((disk) => isKept(disk, isThere(disk)) && !orphans.includes(disk));
    return [...orphaned(orphans), ...unbounded(kept, tenantLimits)];
  },
});
