import { parseBalance, parseMoney } from '../resources/money.ts';
import { type Budget, type BudgetStatus, GPU_HOURS, isBudget } from '../resources/tenants/budget.ts';

/** What a budget has for calls that are priced in one currency. Amounts are millionths of it. */
export interface Purse {
  max: bigint;
  /** As the controller counted it last in this month. Below zero after credits, and 0 before the first count. */
  spent: bigint;
  /** For first hours of starts. */
  reserved: bigint;
  /** Of the newest token record in that count. */
  tokensVersion: string | undefined;
}

/**
 * What a budget has in a currency; undefined where it sets no ceiling to money. A currency that it does not name has
 * nothing where it names others. GPU-hours concern no call.
 *
 * @param status of this month. It stands for a budget that is not known yet.
 */
export function purseOf(
  budget: Budget | undefined,
  status: BudgetStatus | undefined,
  currency: string,
): Purse | undefined {
  const counted = status?.lines.filter(({ unit }) => unit !== GPU_HOURS) ?? [];
  const costs = isBudget(budget) ? budget.costs : counted.map(({ unit, max }) => ({ currency: unit, max }));
  if (costs.length === 0) return undefined;
  const max = costs.find((one) => one.currency === currency)?.max ?? '0';
  const { spent = '0', reserved = '0' } = counted.find(({ unit }) => unit === currency) ?? {};
  return {
    max: parseMoney(max),
    spent: parseBalance(spent),
    reserved: parseMoney(reserved),
    tokensVersion: status?.tokensVersion,
  };
}
