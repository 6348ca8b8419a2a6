import type { KubeObject } from '../../../../kube/types.ts';
import type { GpuInstance } from '../../../../resources/gpu-instance.ts';
import { controllerUidOf, ownerOf } from '../../../../resources/pod/owner.ts';
import { labelsOf } from '../names.ts';

/** The patch that gives a child its owner and labels back; undefined when nothing is missing. */
export function repairPatch(instance: GpuInstance, child: KubeObject): object | undefined {
  if (child.metadata.deletionTimestamp !== undefined) return undefined;
  const labels = Object.entries(labelsOf(instance));
  const missing = labels.filter(([name, value]) => child.metadata.labels?.[name] !== value);
  const isOwned = controllerUidOf(child) === instance.metadata.uid;
  if (missing.length === 0 && isOwned) return undefined;
  const { uid, resourceVersion } = child.metadata;
  const others = child.metadata.ownerReferences?.filter((owner) => owner.uid !== instance.metadata.uid) ?? [];
  return {
    metadata: {
      uid,
      // The patch replaces the whole list of owners, so it must be based on the current list.
      resourceVersion,
      ...(missing.length > 0 && { labels: Object.fromEntries(missing) }),
      ...(!isOwned && { ownerReferences: [...others, ownerOf(instance)] }),
    },
  };
}
