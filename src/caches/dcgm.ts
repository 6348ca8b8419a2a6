import type { ReadStore } from '../kube/watch/store.ts';
import type { Namespace, Pod } from '../kube/types.ts';
import type { ApiKey } from '../resources/api-key.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { TENANT_LABEL } from '../resources/tenants/tenant-policy.ts';

export interface DcgmSource {
  pods: ReadStore<Pod>;
  namespaces: ReadStore<Namespace>;
  instances: ReadStore<GpuInstance>;
  apiKeys: ReadStore<ApiKey>;
}

function isTenant({ namespaces, instances, apiKeys }: DcgmSource, namespace: string): boolean {
  const labels = namespaces.get(namespace)?.metadata.labels;
  if (labels?.[TENANT_LABEL] === 'true') return true;
  return instances.by('namespace', namespace).length > 0 || apiKeys.by('namespace', namespace).length > 0;
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
