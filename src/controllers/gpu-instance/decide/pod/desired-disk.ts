import type { PersistentVolumeClaim } from '../../../../kube/types.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';
import { diskNameOf } from '../../../../resources/pod/disk.ts';
import { CLAIM_ANNOTATION } from '../../../../resources/pod/owner.ts';
import { diskLabelsOf } from '../names.ts';

/**
 * The disk of an instance as a PersistentVolumeClaim. It has no owner: Kubernetes deletes what an instance owns, under
 * foreground deletion even before the controller can keep the disk. The status of the instance says whose it is, the
 * labels say it to people, and the controller deletes or keeps it.
 */
export function desiredDisk(instance: GpuInstance, storageClassName: string, sizeGb: number): PersistentVolumeClaim {
  const requests = { storage: `${sizeGb}Gi` };
  const { namespace } = instance.metadata;
  const annotations = { [CLAIM_ANNOTATION]: instance.metadata.name };
  const marks = { labels: diskLabelsOf(instance), annotations };
  return {
    metadata: { name: diskNameOf(instance), ...(namespace !== undefined && { namespace }), ...marks },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests } },
  };
}
