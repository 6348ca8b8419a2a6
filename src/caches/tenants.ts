import type { KubeObject, Namespace } from '../kube/types.ts';
import type { ReadStore, StoreChange } from '../kube/watch/store.ts';
import type { ApiKey } from '../resources/api-key.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { hasTenantLabel } from '../resources/tenants/tenancy.ts';

export interface TenantSources {
  namespaces: ReadStore<Namespace>;
  instances: ReadStore<GpuInstance>;
  apiKeys: ReadStore<ApiKey>;
}

function isLabelled(namespace: Namespace | undefined): boolean {
  return namespace !== undefined && hasTenantLabel(namespace);
}

/** Whether a namespace is a tenant's: labelled, or in use. */
export function isTenant({ namespaces, instances, apiKeys }: TenantSources, namespace: string): boolean {
  if (isLabelled(namespaces.get(namespace))) return true;
  return instances.by('namespace', namespace).length > 0 || apiKeys.by('namespace', namespace).length > 0;
}

/** Calls back when another namespace may be a tenant's, or one no more. Returns the function that ends this. */
export function onTenants({ namespaces, instances, apiKeys }: TenantSources, listener: () => void): () => void {
  const onUse = <T extends KubeObject>(store: ReadStore<T>): (() => void) =>
    store.onChange(({ before, after }: StoreChange<T>) => {
      const namespace = (after ?? before)?.metadata.namespace ?? '';
      const isOther = before === undefined || after === undefined;
      if (isOther && store.by('namespace', namespace).length <= 1) listener();
    });
  const ends = [
    namespaces.onChange(({ before, after }) => {
      if (isLabelled(before) !== isLabelled(after)) listener();
    }),
    onUse(instances),
    onUse(apiKeys),
  ];
  return () => ends.forEach((end) => end());
}
