import type { PersistentVolumeClaim } from '../../../../kube/types.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';
import { diskLabelsOf, diskNameOf } from '../names.ts';

/**
 * The disk of an instance as a PersistentVolumeClaim. It has no owner: Kubernetes deletes what an instance owns, under
 * foreground deletion even before the controller can keep the disk. The labels say whose it is, and the controller
 * deletes or keeps it.
 */
export function desiredDisk(instance: GpuInstance, storageClassName: string, sizeGb: number): PersistentVolumeClaim {
  const requests = { storage: `${sizeGb}Gi` };
  const { namespace } = instance.metadata;
  const name = diskNameOf(instance);
  return {
    metadata: { name, ...(namespace !== undefined && { namespace }), labels: diskLabelsOf(instance) },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests } },
  };
}
