import type { KubeObject, OwnerReference } from '../../kube/types.ts';
import type { GpuInstance } from '../instances/gpu-instance.ts';
import { API_VERSION } from '../schema.ts';

/** Label of an instance's pods: the uid of the instance. */
export const INSTANCE_UID_LABEL = 'berth.dev/instance-uid';

export function ownerOf({ metadata }: Pick<GpuInstance, 'metadata'>): OwnerReference {
  return {
    apiVersion: API_VERSION,
    kind: 'GPUInstance',
    name: metadata.name,
    uid: metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** The name of the pod of a start. */
export function podNameOf(instance: Pick<GpuInstance, 'metadata'>, incarnation: number): string {
  return `${instance.metadata.name}-${incarnation}`;
}

/** uid of the instance that controls an object, by its owner reference. */
export function controllerUidOf(object: KubeObject): string | undefined {
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner?.kind === 'GPUInstance' && owner.apiVersion === API_VERSION ? owner.uid : undefined;
}

/** The uid of an object's instance, if any: by owner, else by label. Never by name: a successor has the same one. */
export function instanceUidsOf(object: KubeObject): string[] {
  const byOwner = controllerUidOf(object);
  if (byOwner !== undefined) return [byOwner];
  const byLabel = object.metadata.labels?.[INSTANCE_UID_LABEL];
  const isForeign = object.metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false;
  return byLabel === undefined || isForeign ? [] : [byLabel];
}
