import type { CeilingsOf } from '../../../access/ceilings.ts';
import { asCreatedBy, type Principal } from '../../../access/principal.ts';
import { HOUR_MS } from '../../../budgets/accounts.ts';
import type { BudgetOf, KeyBudgetOf } from '../../../budgets/counted.ts';
import { startRefusal } from '../../../budgets/start.ts';
import { keyBudget, tenantBudget } from '../../../budgets/words.ts';
import type { Clock } from '../../../lib/clock.ts';
import { CREATED_BY, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { rentedOf } from '../../../resources/instances/rented.ts';
import { ApiError } from '../../interface/errors/api-error.ts';

export interface StartBudgetDeps {
  ceilings: CeilingsOf;
  budgets: BudgetOf;
  keyBudgets: KeyBudgetOf;
  clock: Pick<Clock, 'now'>;
}

/**
 * Refuses a start that the budgets of the tenant and of the key that asks for it have no room for, whoever created the
 * instance. The controller, which counts to the moment, looks again before it grants a place.
 * @throws ApiError budget_exceeded
 */
export function requireStartBudget(
  deps: StartBudgetDeps,
  caller: Principal,
  { instance, what }: { instance: GpuInstance; what: 'started' | 'lengthened' },
): void {
  const { ceilings, budgets, keyBudgets, clock } = deps;
  const { namespace, name, limits } = caller;
  const { claim, ending, reserved } = instance.status ?? {};
  const price = claim ?? rentedOf(instance)?.price;
  // What runs has had its first hour set aside, and so has what others leave a place for, by those who pay for it.
  const isRunning = claim !== undefined && ending === undefined;
  const isComing = claim === undefined && reserved !== undefined;
  const isPayer = instance.metadata.annotations?.[CREATED_BY] === asCreatedBy(caller);
  const startWith = (isSetAside: boolean) => ({ price, ms: isSetAside ? 0 : HOUR_MS, now: clock.now() });
  const ofTenant = startWith(isRunning || isComing);
  const ofKey = startWith(isRunning || (isComing && isPayer));
  const { budget, policies } = ceilings(namespace);
  const message =
    startRefusal({ budget, status: budgets(namespace), words: tenantBudget(policies) }, ofTenant) ??
    startRefusal({ budget: limits?.budget, status: keyBudgets(caller), words: keyBudget(name) }, ofKey);
  if (message !== undefined) throw new ApiError('budget_exceeded', `Nothing was ${what}. ${message}`);
}
