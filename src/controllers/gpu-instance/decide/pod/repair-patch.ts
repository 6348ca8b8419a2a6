import type { KubeObject, OwnerReference } from '../../../../kube/types.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';
import { RETAINED_LABEL } from '../../../../resources/pod/disk.ts';
import { claimText } from '../../../../resources/pod/claim-on-pod.ts';
import { CLAIM_ANNOTATION, controllerUidOf, ownerOf } from '../../../../resources/pod/owner.ts';
import { diskLabelsOf, labelsOf } from '../names.ts';

type Owners = readonly OwnerReference[];

/** The owners that a child should have; undefined when it has them. */
type MendOwners = (instance: GpuInstance, child: KubeObject) => Owners | undefined;

function withOwner(instance: GpuInstance, child: KubeObject): Owners | undefined {
  if (controllerUidOf(child) === instance.metadata.uid) return undefined;
  // An object has one controller.
  const others = othersThanInstances(child).filter(({ controller }) => controller !== true);
  return [...others, ownerOf(instance)];
}

/** The owners of a disk that are no instances: Kubernetes would delete the disk with an instance that owned it. */
export function othersThanInstances({ metadata }: KubeObject): Owners {
  return metadata.ownerReferences?.filter(({ kind }) => kind !== 'GPUInstance') ?? [];
}

// Earlier versions made the instance the owner of its disk.
function withoutInstances(_instance: GpuInstance, child: KubeObject): Owners | undefined {
  const others = othersThanInstances(child);
  return others.length === (child.metadata.ownerReferences?.length ?? 0) ? undefined : others;
}

function patchOf(
  instance: GpuInstance,
  child: KubeObject,
  wanted: { labels: Record<string, string>; owners: MendOwners; without?: string; annotation?: string },
): object | undefined {
  if (child.metadata.deletionTimestamp !== undefined) return undefined;
  const { labels = {} } = child.metadata;
  const surplus = wanted.without !== undefined && wanted.without in labels ? [[wanted.without, null] as const] : [];
  const missing = [...Object.entries(wanted.labels).filter(([name, value]) => labels[name] !== value), ...surplus];
  const ownerReferences = wanted.owners(instance, child);
  const { annotation } = wanted;
  const isNamed = annotation === undefined || child.metadata.annotations?.[CLAIM_ANNOTATION] === annotation;
  if (missing.length === 0 && ownerReferences === undefined && isNamed) return undefined;
  const { uid, resourceVersion } = child.metadata;
  return {
    metadata: {
      uid,
      // The patch replaces the whole list of owners, so it must be based on the current list.
      resourceVersion,
      ...(missing.length > 0 && { labels: Object.fromEntries(missing) }),
      ...(!isNamed && { annotations: { [CLAIM_ANNOTATION]: annotation } }),
      ...(ownerReferences !== undefined && { ownerReferences }),
    },
  };
}

/**
 * The patch that gives a pod its owner and labels back, and a pod of an earlier release its annotation; undefined when
 * nothing is missing.
 */
export function podRepair(instance: GpuInstance, pod: KubeObject): object | undefined {
  const annotation = pod.metadata.annotations?.[CLAIM_ANNOTATION] ?? claimText(instance.metadata.uid);
  return patchOf(instance, pod, { labels: labelsOf(instance), owners: withOwner, annotation });
}

/**
 * The patch that gives a disk its labels, and takes instances from its owners; undefined when it is as it should be. An
 * instance that goes marks no disk: it may have let it go already.
 */
export function diskRepair(instance: GpuInstance, disk: KubeObject): object | undefined {
  if (instance.metadata.deletionTimestamp !== undefined) return undefined;
  const labels = diskLabelsOf(instance);
  const { name: annotation } = instance.metadata;
  return patchOf(instance, disk, { labels, owners: withoutInstances, without: RETAINED_LABEL, annotation });
}
