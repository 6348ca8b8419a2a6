import { parseQuantity } from '../../../../kube/quantity.ts';
import type { ResourceQuota } from '../../../../kube/types.ts';
import type { Amounts } from '../../../../inventory/amounts.ts';

/** The names under which a quota may limit what a pod requests. */
function namesOf(resource: string): string[] {
  if (resource === 'pods') return ['pods', 'count/pods'];
  if (resource === 'cpu' || resource === 'memory') return [resource, `requests.${resource}`];
  return [`requests.${resource}`];
}

/**
 * Why a quota refuses these requests, if one does. Only the API server knows what quotas with scopes count.
 * @param coming what pods take whose places others still leave
 */
export function quotaRefusal(
  quotas: Iterable<ResourceQuota>,
  requests: Amounts,
  coming: Amounts = {},
): string | undefined {
  for (const { metadata, spec, status } of quotas) {
    if ((spec?.scopes?.length ?? 0) > 0 || spec?.scopeSelector !== undefined) continue;
    for (const [resource, amount] of Object.entries(requests)) {
      const unit = resource === 'cpu' ? 1000 : 1;
      const needed = amount / unit;
      for (const name of namesOf(resource)) {
        const hard = parseQuantity(status?.hard?.[name] ?? '');
        const used = (parseQuantity(status?.used?.[name] ?? '') ?? 0) + (coming[resource] ?? 0) / unit;
        if (hard === undefined || used + needed <= hard) continue;
        return `ResourceQuota ${metadata.name} allows ${hard} ${name}, ${used} are used, and this instance needs ${needed}. Stop another instance, or ask for a larger quota.`;
      }
    }
  }
  return undefined;
}
