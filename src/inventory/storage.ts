import type { StorageClass } from '../kube/types.ts';
import type { GpuPoolSpec } from '../resources/gpu-pool.ts';

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

/** StorageClass of a pool's disks: the one it names, else the cluster's default; undefined without one. */
export function storageClassOf(
  pool: { disk: Pick<GpuPoolSpec['disk'], 'storageClassName'> },
  classes: Iterable<StorageClass>,
): string | undefined {
  const known = [...classes];
  const { storageClassName } = pool.disk;
  if (storageClassName !== undefined) {
    return known.some(({ metadata }) => metadata.name === storageClassName) ? storageClassName : undefined;
  }
  const defaults = known.filter(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true');
  // Of several defaults the newest counts, as in the API server's admission plugin.
  const newest = defaults.toSorted((a, b) =>
    String(b.metadata.creationTimestamp).localeCompare(String(a.metadata.creationTimestamp)),
  )[0];
  return newest?.metadata.name;
}
