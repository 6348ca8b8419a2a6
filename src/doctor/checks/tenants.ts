import type { KubeObject } from '../../kube/types.ts';
import { hasTenantLabel, isSystemNamespace } from '../../resources/tenants/tenancy.ts';
import { TENANT_LABEL } from '../../resources/tenants/tenant-policy.ts';
import { TENANT_LIMIT_NAME } from '../../resources/tenants/tenant-limit.ts';
import { type TenantPolicy, tenantPolicySpecSchema } from '../../resources/tenants/tenant-policy.ts';
import { check, firstOf, named, type Problem } from '../finding.ts';

/** How long the controller may take, above all just after the installation: see "Ceilings for tenants". */
const GRACE_MS = 300_000;

function missing(
  kind: 'tenantlimit' | 'resourcequota',
  tenants: readonly KubeObject[],
  objects: readonly KubeObject[],
): Problem[] {
  const have = new Set(objects.map(({ metadata }) => metadata.namespace));
  const without = tenants.map(({ metadata }) => metadata.name).filter((name) => !have.has(name));
  if (without.length === 0) return [];
  const isLimit = kind === 'tenantlimit';
  return [
    {
      severity: 'error',
      reason: isLimit ? 'NoTenantLimit' : 'NoQuota',
      objects: without.map((name) => `namespace/${name}`),
      message: `In ${named(without)} there is no ${isLimit ? 'TenantLimit' : 'ResourceQuota'} ${TENANT_LIMIT_NAME}.`,
      why: isLimit
        ? 'The API server refuses new objects of the tenant, because the ceilings that it must hold are not there.'
        : 'Nothing bounds how many objects the tenant makes.',
      remedy: `kubectl annotate namespace ${firstOf(without).words} berth.dev/look="$(date +%s)" --overwrite   # the controller looks again`,
    },
  ];
}

function unreadable(policies: readonly TenantPolicy[]): Problem[] {
  return policies.flatMap((policy): Problem[] => {
    const { name } = policy.metadata;
    const why = tenantPolicySpecSchema.safeParse(policy.spec).error?.issues[0];
    if (why === undefined) return [];
    return [
      {
        severity: 'error',
        reason: 'PolicyUnreadable',
        objects: [`tenantpolicy/${name}`],
        message: `TenantPolicy ${name} cannot be read: ${why.path.join('.')}: ${why.message}`,
        why: 'Nothing new can be rented or made in the namespaces that it covers.',
        remedy: `kubectl edit tenantpolicy ${name}`,
      },
    ];
  });
}

/** Namespaces in which tenants have something and whose label has gone, where the label is asked for. */
function former(namespaces: readonly KubeObject[], possessions: readonly KubeObject[]): Problem[] {
  const used = new Set(possessions.map(({ metadata }) => metadata.namespace));
  const names = namespaces
    .filter((one) => used.has(one.metadata.name) && !hasTenantLabel(one))
    .map(({ metadata }) => metadata.name);
  if (names.length === 0) return [];
  return [
    {
      severity: 'warning',
      reason: 'NotATenant',
      objects: names.map((name) => `namespace/${name}`),
      message: `In ${named(names)} there are instances or API keys, and the label ${TENANT_LABEL}=true is not.`,
      why: 'Running instances keep running. The API server refuses new ones, Berth enters none, and keys are refused.',
      remedy: `kubectl label namespace ${firstOf(names).words} ${TENANT_LABEL}=true`,
    },
  ];
}

export const tenants = check({
  name: 'tenants',
  title: 'Every tenant has its ceilings, and every TenantPolicy can be read',
  needs: ['namespaces', 'tenantLimits', 'quotas', 'tenantPolicies', 'instances', 'apiKeys', 'policies'],
  find(objects, { now, prefix, namespace }) {
    const { namespaces, tenantLimits, quotas, tenantPolicies, instances, apiKeys, policies } = objects;
    const possible = namespaces.filter(
      ({ metadata: { name, deletionTimestamp } }) =>
        deletionTimestamp === undefined && !isSystemNamespace(name, namespace),
    );
    const settled = possible.filter((one) => {
      const age = now - Date.parse(one.metadata.creationTimestamp ?? '');
      return hasTenantLabel(one) && !(age < GRACE_MS);
    });
    const isAsked = policies.some(({ metadata }) => metadata.name === `${prefix}-tenants`);
    return [
      ...missing('tenantlimit', settled, tenantLimits),
      ...missing('resourcequota', settled, quotas),
      ...unreadable(tenantPolicies),
      ...(isAsked ? former(possible, [...instances, ...apiKeys]) : []),
    ];
  },
});
