import { keyOf } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { CLOSED_CEILINGS, DEFAULT_CEILINGS } from '../resources/tenants/ceilings.ts';
import {
  TENANT_LIMIT_NAME,
  type TenantLimit,
  type TenantCeilings,
  tenantLimitSpecSchema,
} from '../resources/tenants/tenant-limit.ts';

export type CeilingsOf = (tenant: string) => TenantCeilings;

/** Of a tenant that no policy covers. */
const UNCOVERED = { ...DEFAULT_CEILINGS, policies: [] };

/**
 * Reads the ceilings that the controller wrote into a tenant's namespace. Without an object the defaults hold; when an
 * object cannot be read, the closed ones do.
 */
export function ceilingsReader(limits: Pick<ReadStore<TenantLimit>, 'get'>): CeilingsOf {
  const parsed = new WeakMap<TenantLimit, ReturnType<CeilingsOf>>();
  return (tenant) => {
    const limit = limits.get(keyOf({ namespace: tenant, name: TENANT_LIMIT_NAME }));
    if (limit === undefined) return UNCOVERED;
    const known = parsed.get(limit);
    if (known !== undefined) return known;
    const read = tenantLimitSpecSchema.safeParse(limit.spec);
    const ceilings = read.success ? read.data : CLOSED_CEILINGS;
    parsed.set(limit, ceilings);
    return ceilings;
  };
}
