import { keyOf } from '../../kube/types.ts';
import { DISK_POLICY_LABEL, isOrphan, RETAINED_LABEL } from '../../resources/pod/disk.ts';
import { check, named, type Problem } from '../finding.ts';

export const disks = check({
  name: 'disks',
  title: 'Every disk has its instance, or its owner asked to keep it',
  needs: ['orphans', 'instances'],
  find({ orphans, instances }): Problem[] {
    const there = new Set(instances.map(keyOf));
    const found = orphans.filter((disk) =>
      isOrphan(disk, (name) => there.has(keyOf({ namespace: disk.metadata.namespace, name }))),
    );
    if (found.length === 0) return [];
    return [
      {
        severity: 'warning',
        reason: 'DiskWithoutInstance',
        objects: found.map(({ metadata: { namespace, name } }) => `${namespace}/persistentvolumeclaim/${name}`),
        message: `The instances of disks ${named(found.map(keyOf))} are not there, and Berth did not see their owners delete them.`,
        why: 'The disks hold storage. An instance of the same name gets its disk back, for example from a backup.',
        remedy: `kubectl get pvc --all-namespaces -l ${RETAINED_LABEL},${DISK_POLICY_LABEL}=Delete   # delete those that nobody needs`,
      },
    ];
  },
});
