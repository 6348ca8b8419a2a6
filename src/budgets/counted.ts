import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import { monthOf } from '../ledger/month.ts';
import type { ApiKey, ApiKeySpec } from '../resources/api-key.ts';
import { parseBalance, parseMoney } from '../resources/money.ts';
import { type BudgetStatus, GPU_HOURS } from '../resources/tenants/budget.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../resources/tenants/tenant-limit.ts';
import { type BudgetWords, spentWords } from './words.ts';

/** What the controller counted, when it is of the month of `now`, milliseconds since the epoch: else it says nothing. */
export function ofThisMonth(budget: BudgetStatus | undefined, now: number): BudgetStatus | undefined {
  return budget?.month === monthOf(now).name ? budget : undefined;
}

/** What the controller counted of the budget of a tenant in this month; undefined without a budget. */
export type BudgetOf = (tenant: string) => BudgetStatus | undefined;

/** Reads what the controller wrote into a tenant's namespace. */
export function budgetReader(limits: Pick<ReadStore<TenantLimit>, 'get'>, clock: Pick<Clock, 'now'>): BudgetOf {
  return (tenant) =>
    ofThisMonth(limits.get(keyOf({ namespace: tenant, name: TENANT_LIMIT_NAME }))?.status?.budget, clock.now());
}

interface KeyRef extends Pick<ApiKeySpec, 'limits'> {
  namespace: string;
  name: string;
}

/** What the controller counted of the budget of the key that calls in this month; undefined without a budget. */
export type KeyBudgetOf = (key: KeyRef) => BudgetStatus | undefined;

/** Reads what the controller wrote into APIKeys. People have no budget of their own. */
export function keyBudgetReader(apiKeys: Pick<ReadStore<ApiKey>, 'get'>, clock: Pick<Clock, 'now'>): KeyBudgetOf {
  return ({ namespace, name, limits }) => {
    // Most keys have none, and a budget that was taken away holds nothing back.
    if (limits?.budget === undefined) return undefined;
    return ofThisMonth(apiKeys.get(keyOf({ namespace, name }))?.status?.budget, clock.now());
  };
}

/** What the controller counted of the budget of a key that was deleted, in this month. */
export type DeletedKeyBudgetOf = (tenant: string, key: string) => BudgetStatus | undefined;

/** Reads what the controller remembers of deleted keys in the TenantLimit. */
export function deletedKeyBudgetReader(
  limits: Pick<ReadStore<TenantLimit>, 'get'>,
  clock: Pick<Clock, 'now'>,
): DeletedKeyBudgetOf {
  return (tenant, key) => {
    const limit = limits.get(keyOf({ namespace: tenant, name: TENANT_LIMIT_NAME }));
    return ofThisMonth(limit?.status?.keyBudgets?.find(({ name }) => name === key)?.used, clock.now());
  };
}

/** Of a place. */
export interface Price {
  perHour: string;
  currency: string;
}

/** That a budget is spent which a place at this price would draw on; undefined while something is left. */
export function spentMessage(budget: BudgetStatus, words: BudgetWords, price: Price): string | undefined {
  const line = budget.lines.find(({ unit, max, spent }) => {
    if (parseBalance(spent) < parseMoney(max)) return false;
    return unit === GPU_HOURS || (unit === price.currency && parseMoney(price.perHour) > 0n);
  });
  return line && spentWords(line, budget, words);
}
