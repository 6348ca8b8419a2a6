import type { KubeObject, OwnerReference } from '../../kube/types.ts';
import type { GpuInstance } from '../instances/gpu-instance.ts';
import { API_VERSION } from '../schema.ts';

/** Label of an instance's pods and disk: the name of the instance. Anybody may write it: it decides nothing about a pod. */
export const INSTANCE_LABEL = 'berth.dev/instance';

/** Label of an instance's pods and disk: the uid of the instance. Anybody may write it: it decides nothing about a pod. */
export const INSTANCE_UID_LABEL = 'berth.dev/instance-uid';

/**
 * Annotation of an instance's pods and disk that only the controller changes: whose they are, whatever becomes of their
 * labels and owners. On a disk it is the name of the instance. On a pod it begins with the uid of the instance; that of a
 * first start has with it what the controller granted, until the status says so.
 */
export const CLAIM_ANNOTATION = 'berth.dev/claim';

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

/** The start that a pod is of, as its name says: the inverse of {@link podNameOf}. Undefined for another name. */
export function startOf({ metadata }: Pick<KubeObject, 'metadata'>): { name: string; incarnation: number } | undefined {
  const [, name, incarnation] = /^(.{1,253})-(\d{1,9})$/.exec(metadata.name) ?? [];
  return name === undefined ? undefined : { name, incarnation: Number(incarnation) };
}

/** uid of the instance that controls an object, by its owner reference. */
export function controllerUidOf(object: Pick<KubeObject, 'metadata'>): string | undefined {
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner?.kind === 'GPUInstance' && owner.apiVersion === API_VERSION ? owner.uid : undefined;
}

/** The uid of the instance that a pod was made for, as its annotation begins. */
const MADE_FOR = /^\{"instance":"([\w-]{1,64})"/;

/** The first release that put claims on pods wrote no uid beside them. */
const BEARS_CLAIM_ALONE = '{"claim":';

/**
 * The uid of the instance that a pod was made for, by what only the controller writes. Labels and owners are no proof:
 * a tenant who may make pods could make one that its instance would wait for, or that hides what it has claimed. Nor is
 * the name: a successor has the same one.
 */
export function instanceUidOf(pod: Pick<KubeObject, 'metadata'>): string | undefined {
  const text = pod.metadata.annotations?.[CLAIM_ANNOTATION] ?? '';
  return text.startsWith(BEARS_CLAIM_ALONE) ? controllerUidOf(pod) : MADE_FOR.exec(text)?.[1];
}
