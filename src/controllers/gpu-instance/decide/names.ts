import type { GpuInstance } from '../../../resources/gpu-instance.ts';

/** Keeps the instance until its pods and its disk are dealt with and its usage record is written. */
export const FINALIZER = 'berth.dev/cleanup';
export const INSTANCE_LABEL = 'berth.dev/instance';
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'berth' } as const;

export function podNameOf(instance: Pick<GpuInstance, 'metadata'>, incarnation: number): string {
  return `${instance.metadata.name}-${incarnation}`;
}

export function diskNameOf(instance: Pick<GpuInstance, 'metadata'>): string {
  return `${instance.metadata.name}-disk`;
}

export function usageNameOf({ metadata }: Pick<GpuInstance, 'metadata'>): string {
  return `${metadata.name}-${(metadata.uid ?? '').slice(0, 8)}`;
}

/** Names that Berth generates are unique in the cluster. Other names may occur in several namespaces. */
export function sshUserOf({ metadata }: Pick<GpuInstance, 'metadata'>): string {
  const isGenerated = /^i-[a-z2-7]{12,20}$/.test(metadata.name);
  return isGenerated || metadata.namespace === undefined ? metadata.name : `${metadata.name}.${metadata.namespace}`;
}
