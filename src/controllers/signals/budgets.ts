import { ofThisMonth } from '../../budgets/counted.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { compareText } from '../../lib/compare.ts';
import type { TenantLimit } from '../../resources/tenants/tenant-limit.ts';

export interface BudgetSource {
  tenantLimits: Pick<ReadStore<TenantLimit>, 'values'>;
}

/** How much a tenant has spent of its budget. */
export interface BudgetUse {
  tenant: string;
  /** The TenantPolicies that the budget comes from, with commas between them. */
  policy: string;
  /** Of the part that is used most: 1 is all of it. */
  ratio: number;
}

/** Tenants that are named. */
const MOST_TENANTS = 1_000;
const OTHERS = 'other';

function byAge({ metadata: a }: TenantLimit, { metadata: b }: TenantLimit): number {
  const byTime = compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '');
  return byTime || compareText(a.namespace ?? '', b.namespace ?? '');
}

/**
 * How much of the budget of the month each tenant has spent that has one. After the first 1,000 tenants, which are the
 * oldest, the one that has spent most stands for the others of its policy.
 */
export function budgetUses({ tenantLimits }: BudgetSource, now: number): BudgetUse[] {
  const counted = [...tenantLimits.values()].filter(({ status }) => ofThisMonth(status?.budget, now));
  const uses = counted.toSorted(byAge).map(({ metadata, spec, status }, index) => ({
    tenant: index < MOST_TENANTS ? (metadata.namespace ?? '') : OTHERS,
    policy: spec.policies.toSorted(compareText).join(','),
    ratio: (status?.budget?.percent ?? 0) / 100,
  }));
  const groups = Map.groupBy(uses, ({ tenant, policy }) => `${tenant}/${policy}`);
  return [...groups.values()].map((group) => group.reduce((most, use) => (use.ratio > most.ratio ? use : most)));
}
