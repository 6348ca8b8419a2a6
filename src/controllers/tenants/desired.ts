import { parseQuantity } from '../../kube/quantity.ts';
import type { Namespace, ResourceQuota } from '../../kube/types.ts';
import { API_KEYS } from '../../resources/api-key.ts';
import { GPU_INSTANCES } from '../../resources/instances/gpu-instance.ts';
import { INSTANCE_TEMPLATES } from '../../resources/instance-template.ts';
import { REGISTRY_CREDENTIALS } from '../../resources/registry-credential.ts';
import { SSH_KEYS } from '../../resources/ssh-key.ts';
import type { Ceilings } from '../../resources/tenants/ceilings.ts';
import { TENANT_LABEL } from '../../resources/tenants/tenant-policy.ts';
import { WEBHOOKS } from '../../resources/webhooks/webhook.ts';

/** On what the controller makes in a tenant's namespace: it removes only what has these. */
export const OWN_LABELS = { 'app.kubernetes.io/managed-by': 'berth' } as const;

type Hard = Readonly<Record<string, string>>;

/** Whether a namespace is a tenant's: labelled, or in use. Those of the cluster and of Berth itself are not. */
export function isTenant({ metadata }: Namespace, facts: { own: string; isUsed: boolean }): boolean {
  if (metadata.name.startsWith('kube-') || metadata.name === facts.own) return false;
  return facts.isUsed || metadata.labels?.[TENANT_LABEL] === 'true';
}

/** spec.hard of the ResourceQuota of a tenant. */
export function hardOf({ objects }: Pick<Ceilings, 'objects'>): Hard {
  const counts = [
    [GPU_INSTANCES, objects.instances],
    [SSH_KEYS, objects.sshKeys],
    [INSTANCE_TEMPLATES, objects.templates],
    [API_KEYS, objects.apiKeys],
    [REGISTRY_CREDENTIALS, objects.registries],
    [WEBHOOKS, objects.webhooks],
  ] as const;
  return Object.fromEntries(counts.map(([{ plural, group }, most]) => [`count/${plural}.${group}`, String(most)]));
}

/** Whether two lists mean the same: the API server writes 1000 as 1k. */
export function sameHard(left: Hard = {}, right: Hard = {}): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => parseQuantity(left[name] ?? '') === parseQuantity(right[name] ?? ''));
}

/**
 * Whether Kubernetes does not know yet what a quota counts. The quota controller finds a new kind up to half a minute
 * after its CustomResourceDefinition was made, and looks at a quota again minutes later. Meanwhile the API server
 * refuses every object that the quota would count.
 */
export function isUncounted({ status }: ResourceQuota): boolean {
  return Object.keys(status?.hard ?? {}).some((name) => status?.used?.[name] === undefined);
}
