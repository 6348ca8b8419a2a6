import { type KubeObject, PERSISTENT_VOLUME_CLAIMS, type Pod, PODS, type ResourceType } from '../../kube/types.ts';
import { INSTANCE_UID_LABEL } from '../../inventory/holdings.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import type { Run } from './deps.ts';
import { diskNameOf, INSTANCE_LABEL, MANAGED_BY } from './names.ts';
import { controllerUidOf, instanceUidsOf, ownerOf } from './owner.ts';

function wantedLabels({ metadata }: GpuInstance): Record<string, string> {
  return { ...MANAGED_BY, [INSTANCE_LABEL]: metadata.name, [INSTANCE_UID_LABEL]: metadata.uid ?? '' };
}

/** The patch that gives a child its owner and labels back; undefined when nothing is missing. */
export function repairOf(instance: GpuInstance, child: KubeObject): object | undefined {
  if (child.metadata.deletionTimestamp !== undefined) return undefined;
  const missing = Object.entries(wantedLabels(instance)).filter(
    ([name, value]) => child.metadata.labels?.[name] !== value,
  );
  const isOwned = controllerUidOf(child) === instance.metadata.uid;
  if (missing.length === 0 && isOwned) return undefined;
  const { uid, resourceVersion } = child.metadata;
  const others = child.metadata.ownerReferences?.filter((owner) => owner.uid !== instance.metadata.uid) ?? [];
  return {
    metadata: {
      uid,
      // The list of owners is replaced as a whole: only on what was read.
      resourceVersion,
      ...(missing.length > 0 && { labels: Object.fromEntries(missing) }),
      ...(!isOwned && { ownerReferences: [...others, ownerOf(instance)] }),
    },
  };
}

async function repairOne<T extends KubeObject>(
  run: Run,
  type: ResourceType<T>,
  instance: GpuInstance,
  child: T,
): Promise<T> {
  const patch = repairOf(instance, child);
  if (patch === undefined) return child;
  const { namespace, name } = child.metadata;
  run.context.log.info({ kind: type.kind, name }, 'Giving an object its owner back');
  return run.deps.client.patch(type, { namespace, name }, patch, { type: 'merge', signal: run.context.signal });
}

/** Restores owner references and labels that somebody removed from the pods and the disk of an instance. */
export async function repair(run: Run, instance: GpuInstance, pods: readonly Pod[]): Promise<Pod[]> {
  const { deps, key } = run;
  const disk = deps.stores.disks.get(`${instance.metadata.namespace}/${diskNameOf(instance)}`);
  if (disk !== undefined && instanceUidsOf(disk).includes(instance.metadata.uid ?? '')) {
    const fixed = await repairOne(run, PERSISTENT_VOLUME_CLAIMS, instance, disk);
    if (fixed !== disk) deps.fence.wrote(key, deps.stores.disks, fixed);
  }
  const repaired: Pod[] = [];
  for (const pod of pods) {
    const fixed = await repairOne(run, PODS, instance, pod);
    if (fixed !== pod) deps.fence.wrote(key, deps.stores.pods, fixed);
    repaired.push(fixed);
  }
  return repaired;
}
