import type { KubeObject, Namespace } from '../../kube/types.ts';
import { TENANT_LABEL } from './tenant-policy.ts';

/** Whether the operator of the cluster made a namespace a tenant's by its label. */
export function hasTenantLabel({ metadata }: KubeObject): boolean {
  return metadata.labels?.[TENANT_LABEL] === 'true';
}

/** Whether a namespace is the cluster's or Berth's own. Nobody rents there, whatever its labels say. */
export function isSystemNamespace(name: string, own: string): boolean {
  return name.startsWith('kube-') || name === own;
}

export interface TenancyRules {
  /** Berth's own namespace. */
  own: string;
  /** Whether a tenant needs the label `berth.dev/tenant=true`. */
  requireLabel: boolean;
}

/** Why a namespace is no tenant, in words for its callers; undefined for a tenant. */
export function tenancyRefusal(namespace: Namespace, { own, requireLabel }: TenancyRules): string | undefined {
  const { name, deletionTimestamp } = namespace.metadata;
  if (deletionTimestamp !== undefined) return `namespace ${name} is being deleted.`;
  if (isSystemNamespace(name, own))
    return `namespace ${name} is no tenant of Berth: it belongs to the cluster itself. Use a namespace of your own.`;
  if (!requireLabel || hasTenantLabel(namespace)) return undefined;
  return `namespace ${name} is no tenant of Berth. An operator of the cluster makes it one: kubectl label namespace ${name} ${TENANT_LABEL}=true`;
}
