import type { Finding } from '../../kube/conditions.ts';
import { compareText } from '../../lib/compare.ts';
import { TENANT_POLICIES, type TenantPolicy, tenantPolicySpecSchema } from '../../resources/tenants/tenant-policy.ts';
import type { TenantLimit } from '../../resources/tenants/tenant-limit.ts';
import type { Source } from '../../runtime/source.ts';
import type { CommonDeps } from '../common-deps.ts';
import { DelayedCall } from '../delayed-call.ts';
import { readPolicy } from '../tenants/tenant-ceilings.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';

/** The counts may be this old: a policy of a thousand tenants changes as many TenantLimits. */
const DELAY_MS = 2_000;

/** The policies that TenantLimits name or named, some time after the change. */
function limitSource({ stores, clock }: CommonDeps): Source {
  return {
    synced: stores.tenantLimits.synced,
    start(add) {
      const changed = new Set<string>();
      const call = new DelayedCall(clock, DELAY_MS, () => {
        for (const name of changed) add(name);
        changed.clear();
      });
      const stop = stores.tenantLimits.onChange(({ before, after }) => {
        for (const limit of [before, after]) for (const name of limit?.spec.policies ?? []) changed.add(name);
        if (changed.size > 0) call.request();
      });
      return () => {
        stop();
        call.cancel();
      };
    },
  };
}

function readiness(policy: TenantPolicy, limits: readonly TenantLimit[]): Omit<Finding, 'type'> {
  if (readPolicy(policy) === undefined) {
    const why = tenantPolicySpecSchema.safeParse(policy.spec).error?.issues[0];
    const message = `The spec cannot be read: ${why?.path.join('.')}: ${why?.message}. Correct it. Until then nothing new can be rented or made in the namespaces that it covers.`;
    return { status: 'False', reason: 'Unreadable', message };
  }
  const shared = limits
    .filter(({ spec }) => spec.policies.length > 1)
    .toSorted((a, b) => compareText(a.metadata.namespace ?? '', b.metadata.namespace ?? ''))[0];
  if (shared === undefined) return { status: 'True', reason: 'Accepted', message: 'The ceilings hold.' };
  const others = shared.spec.policies.filter((name) => name !== policy.metadata.name);
  const message = `TenantPolicies ${[policy.metadata.name, ...others].join(', ')} cover namespace ${shared.metadata.namespace} with as many labels, so there the strictest ceilings of them hold together. If only one should hold, let it ask for one label more.`;
  return { status: 'True', reason: 'Overlaps', message };
}

/** Shows whether a policy can be read, and how many tenants have their ceilings from it. */
export function tenantPolicyStatus(deps: CommonDeps): StatusKind<TenantPolicy> {
  const { tenantPolicies, tenantLimits } = deps.stores;
  return {
    name: 'tenantpolicy',
    type: TENANT_POLICIES,
    store: tenantPolicies,
    sources: [limitSource(deps)],
    statusOf(policy, now) {
      const limits = tenantLimits.by('policy', policy.metadata.name);
      return { ...readyStatus(policy, readiness(policy, limits), now), tenants: limits.length };
    },
  };
}
