import type { ReadStore } from '../kube/watch/store.ts';
import type { ApiKey } from '../resources/api-key.ts';
import type { Principal } from './principal.ts';
import { keyOf } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import { parseMoney } from '../resources/money.ts';
import { type BudgetStatus, GPU_HOURS } from '../resources/tenants/budget.ts';
import { type BudgetWords, OF_TENANT, spentSentence } from '../resources/tenants/budget-words.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../resources/tenants/tenant-limit.ts';
import { whoCanChange } from '../resources/tenants/who-can-change.ts';

/** What the controller counted of the budget of a tenant in this month; undefined without a budget. */
export type BudgetOf = (tenant: string) => BudgetStatus | undefined;

/** Reads what the controller wrote into a tenant's namespace. What it wrote for another month counts for nothing. */
export function budgetReader(limits: Pick<ReadStore<TenantLimit>, 'get'>, clock: Pick<Clock, 'now'>): BudgetOf {
  return (tenant) => {
    const budget = limits.get(keyOf({ namespace: tenant, name: TENANT_LIMIT_NAME }))?.status?.budget;
    return isOfMonth(budget, clock.now()) ? budget : undefined;
  };
}

/** What the controller counted of the budget of the key that calls in this month; undefined without a budget. */
export type KeyBudgetOf = (caller: Pick<Principal, 'namespace' | 'name' | 'limits'>) => BudgetStatus | undefined;

/** Reads what the controller wrote into APIKeys. People have no budget of their own. */
export function keyBudgetReader(apiKeys: Pick<ReadStore<ApiKey>, 'get'>, clock: Pick<Clock, 'now'>): KeyBudgetOf {
  return ({ namespace, name, limits }) => {
    // Most keys have none, and a budget that was taken away holds nothing back.
    if (limits?.budget === undefined) return undefined;
    const budget = apiKeys.get(keyOf({ namespace, name }))?.status?.budget;
    return isOfMonth(budget, clock.now()) ? budget : undefined;
  };
}

/** Whether a count is of the month of `now`, milliseconds since the epoch. */
function isOfMonth(budget: BudgetStatus | undefined, now: number): boolean {
  return budget !== undefined && budget.month === new Date(now).toISOString().slice(0, 7);
}

/** Of a place. */
export interface Price {
  perHour: string;
  currency: string;
}

/** @param policies the TenantPolicies that its ceilings come from */
export function tenantBudget(policies: readonly string[]): BudgetWords {
  return { what: OF_TENANT, lift: whoCanChange('budget', policies) };
}

/**
 * That a budget is spent which a place at this price would draw on, when it renews, and who can raise it; undefined while
 * something is left. Without a price: that anything of the budget is spent.
 */
export function spentMessage(budget: BudgetStatus, words: BudgetWords, price?: Price): string | undefined {
  const line = budget.lines.find(({ unit, max, spent }) => {
    if (spent.startsWith('-') || parseMoney(spent) < parseMoney(max)) return false;
    if (price === undefined) return parseMoney(spent) > 0n;
    return unit === GPU_HOURS || (unit === price.currency && parseMoney(price.perHour) > 0n);
  });
  return line && spentSentence(line, budget, words);
}
