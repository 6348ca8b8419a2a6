import type { ReadStore } from '../../kube/watch/store.ts';
import type { Namespace } from '../../kube/types.ts';
import { CLOSED_CEILINGS } from '../../resources/tenants/ceilings.ts';
import type { TenantLimitSpec } from '../../resources/tenants/tenant-limit.ts';
import type { TenantPolicy } from '../../resources/tenants/tenant-policy.ts';
import { labelsOf, resolveCeilings } from './resolve.ts';

/** The ceilings of a tenant, and the TenantPolicies that they come from. */
export type LimitOf = (namespace: string) => TenantLimitSpec;

/** Of a namespace that the cache does not show yet: its labels, and so its policies, are unknown. */
const UNKNOWN: TenantLimitSpec = { ...CLOSED_CEILINGS, policies: [] };

function pairOf(name: string, value: string): string {
  return `${name}=${value}`;
}

/**
 * Reads the ceilings of a tenant from the policies themselves. The leader asks this, not the TenantLimit: the first
 * instance of a namespace comes before its TenantLimit. What was found is kept until a policy or the namespace changes.
 */
export function limitReader(
  policies: Pick<ReadStore<TenantPolicy>, 'values' | 'resourceVersion'>,
  namespaces: Pick<ReadStore<Namespace>, 'get'>,
): LimitOf {
  let version: string | undefined;
  let byPair = new Map<string, TenantPolicy[]>();
  let known = new WeakMap<Namespace, TenantLimitSpec>();

  function refresh(): void {
    if (version === policies.resourceVersion) return;
    version = policies.resourceVersion;
    // By one of its labels a policy is found among many that do not cover the namespace.
    byPair = Map.groupBy(policies.values(), (policy) => {
      const [first] = labelsOf(policy);
      return first === undefined ? '' : pairOf(...first);
    });
    known = new WeakMap();
  }

  function resolve({ metadata: { labels = {} } }: Namespace): TenantLimitSpec {
    const pairs = ['', ...Object.entries(labels).map(([name, value]) => pairOf(name, value))];
    const { ceilings, policies: names } = resolveCeilings(
      labels,
      pairs.flatMap((pair) => byPair.get(pair) ?? []),
    );
    return { ...ceilings, policies: names };
  }

  return (name) => {
    refresh();
    const namespace = namespaces.get(name);
    if (namespace === undefined) return UNKNOWN;
    const limit = known.get(namespace) ?? resolve(namespace);
    known.set(namespace, limit);
    return limit;
  };
}
