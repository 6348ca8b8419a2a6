import type { ReadStore } from '../kube/watch/store.ts';
import type { Pod } from '../kube/types.ts';
import { isTenant, type TenantSources } from './tenants.ts';

export interface DcgmSource extends TenantSources {
  pods: ReadStore<Pod>;
}

/**
 * The pod of NVIDIA DCGM exporter on a node. A tenant may give its own pod that label, and would then tell the others
 * what their GPUs do: a pod in the namespace of a tenant is none.
 */
export function dcgmExporterOn(source: DcgmSource, node: string): Pod | undefined {
  return source.pods.by('exporterNode', node).find(({ metadata: { deletionTimestamp, namespace = '' } }) => {
    return deletionTimestamp === undefined && !isTenant(source, namespace);
  });
}
