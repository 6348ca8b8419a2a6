import type { PersistentVolumeClaim } from '../../../../kube/types.ts';
import { INSTANCE_UID_LABEL } from '../../../../resources/pod/owner.ts';
import type { GpuInstance } from '../../../../resources/gpu-instance.ts';
import { diskNameOf, INSTANCE_LABEL, MANAGED_BY } from '../names.ts';
import { ownerOf } from '../../../../resources/pod/owner.ts';

/** The disk of an instance as a PersistentVolumeClaim. */
export function desiredDisk(instance: GpuInstance, storageClassName: string, sizeGb: number): PersistentVolumeClaim {
  const { namespace, uid = '', name } = instance.metadata;
  return {
    metadata: {
      name: diskNameOf(instance),
      ...(namespace !== undefined && { namespace }),
      labels: { ...MANAGED_BY, [INSTANCE_LABEL]: name, [INSTANCE_UID_LABEL]: uid },
      ownerReferences: [ownerOf(instance)],
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: `${sizeGb}Gi` } },
    },
  };
}
