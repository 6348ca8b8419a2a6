import { parseMoney } from '../resources/money.ts';
import type { Budget } from '../resources/tenants/budget.ts';

/** The budget under which both hold. Of a currency that one of them does not name, it allows nothing. */
export function strictestBudget(a: Budget, b: Budget): Budget {
  const hours = [a.gpuHours, b.gpuHours].filter((one) => one !== undefined);
  return { costs: strictestCosts(a.costs, b.costs), ...(hours.length > 0 && { gpuHours: Math.min(...hours) }) };
}

function strictestCosts(a: Budget['costs'], b: Budget['costs']): Budget['costs'] {
  if (a.length === 0 || b.length === 0) return [...a, ...b];
  const both = a.flatMap(({ currency, max }) => {
    const other = b.find((one) => one.currency === currency);
    if (other === undefined) return [];
    return [{ currency, max: parseMoney(max) <= parseMoney(other.max) ? max : other.max }];
  });
  // An empty list would be no ceiling.
  return both.length > 0 ? both : [a[0], b[0]].flatMap((one) => (one ? [{ currency: one.currency, max: '0' }] : []));
}
