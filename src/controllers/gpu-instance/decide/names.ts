import type { KubeObject } from '../../../kube/types.ts';
import { DISK_POLICY_LABEL } from '../../../resources/pod/disk.ts';
import { INSTANCE_LABEL, INSTANCE_UID_LABEL, ownerOf } from '../../../resources/pod/owner.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';

/** The labels of an instance's pods and disk. */
export function labelsOf({ metadata }: Pick<GpuInstance, 'metadata'>): Record<string, string> {
  const { name, uid = '' } = metadata;
  return { 'app.kubernetes.io/managed-by': 'berth', [INSTANCE_LABEL]: name, [INSTANCE_UID_LABEL]: uid };
}

/** The metadata of a pod of an instance. */
export function podMetadata(instance: Pick<GpuInstance, 'metadata'>, name: string): KubeObject['metadata'] {
  const { namespace } = instance.metadata;
  const owned = { labels: labelsOf(instance), ownerReferences: [ownerOf(instance)] };
  return { name, ...(namespace !== undefined && { namespace }), ...owned };
}

/** The labels of an instance's disk. */
export function diskLabelsOf(instance: Pick<GpuInstance, 'metadata' | 'spec'>): Record<string, string> {
  return { ...labelsOf(instance), [DISK_POLICY_LABEL]: instance.spec.diskPolicy };
}

/** The name of a usage record; `number` counts those of the instance from 0. */
export function usageNameOf({ metadata }: Pick<GpuInstance, 'metadata'>, number: number): string {
  const first = `${metadata.name}-${(metadata.uid ?? '').slice(0, 8)}`;
  return number === 0 ? first : `${first}-${number}`;
}

/**
 * The login that the record publishes. It names the namespace, because every tenant may give its own instance this name.
 * Records of older versions have the bare name, and keep it.
 */
export function sshUserOf({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): string {
  const { name, namespace } = metadata;
  return status?.ssh?.user ?? (namespace === undefined ? name : `${name}.${namespace}`);
}
