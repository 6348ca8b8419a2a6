import type { KubeObject, OwnerReference } from '../../../../kube/types.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';
import { controllerUidOf, ownerOf } from '../../../../resources/pod/owner.ts';
import { diskLabelsOf, labelsOf } from '../names.ts';

type Owners = readonly OwnerReference[];

/** The owners that a child should have; undefined when it has them. */
type MendOwners = (instance: GpuInstance, child: KubeObject) => Owners | undefined;

function othersThan({ metadata }: GpuInstance, child: KubeObject): Owners {
  return child.metadata.ownerReferences?.filter(({ uid }) => uid !== metadata.uid) ?? [];
}

function withOwner(instance: GpuInstance, child: KubeObject): Owners | undefined {
  const isOwned = controllerUidOf(child) === instance.metadata.uid;
  return isOwned ? undefined : [...othersThan(instance, child), ownerOf(instance)];
}

// Earlier versions made the instance the owner of its disk.
function withoutOwner(instance: GpuInstance, child: KubeObject): Owners | undefined {
  const others = othersThan(instance, child);
  return others.length === (child.metadata.ownerReferences?.length ?? 0) ? undefined : others;
}

function patchOf(
  instance: GpuInstance,
  child: KubeObject,
  wanted: { labels: Record<string, string>; owners: MendOwners },
): object | undefined {
  if (child.metadata.deletionTimestamp !== undefined) return undefined;
  const missing = Object.entries(wanted.labels).filter(([name, value]) => child.metadata.labels?.[name] !== value);
  const ownerReferences = wanted.owners(instance, child);
  if (missing.length === 0 && ownerReferences === undefined) return undefined;
  const { uid, resourceVersion } = child.metadata;
  return {
    metadata: {
      uid,
      // The patch replaces the whole list of owners, so it must be based on the current list.
      resourceVersion,
      ...(missing.length > 0 && { labels: Object.fromEntries(missing) }),
      ...(ownerReferences !== undefined && { ownerReferences }),
    },
  };
}

/** The patch that gives a pod its owner and labels back; undefined when nothing is missing. */
export function podRepair(instance: GpuInstance, pod: KubeObject): object | undefined {
  return patchOf(instance, pod, { labels: labelsOf(instance), owners: withOwner });
}

/** The patch that gives a disk its labels, and takes the instance from its owners; undefined when it is as it should be. */
export function diskRepair(instance: GpuInstance, disk: KubeObject): object | undefined {
  return patchOf(instance, disk, { labels: diskLabelsOf(instance), owners: withoutOwner });
}
