import type { GpuInstance } from '../../../resources/gpu-instance.ts';

/** Keeps the instance until its pod, its disk and its bill are settled. */
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

/** Names that Berth makes up are unique in the cluster; others may stand in several namespaces. */
export function sshUserOf({ metadata }: Pick<GpuInstance, 'metadata'>): string {
  const made = /^i-[a-z2-7]{12,20}$/.test(metadata.name);
  return made || metadata.namespace === undefined ? metadata.name : `${metadata.name}.${metadata.namespace}`;
}
