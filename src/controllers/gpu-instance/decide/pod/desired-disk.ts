import type { PersistentVolumeClaim } from '../../../../kube/types.ts';
import type { GpuInstance } from '../../../../resources/gpu-instance.ts';
import { childMetadata, diskNameOf } from '../names.ts';

/** The disk of an instance as a PersistentVolumeClaim. */
export function desiredDisk(instance: GpuInstance, storageClassName: string, sizeGb: number): PersistentVolumeClaim {
  const requests = { storage: `${sizeGb}Gi` };
  return {
    metadata: childMetadata(instance, diskNameOf(instance)),
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests } },
  };
}
