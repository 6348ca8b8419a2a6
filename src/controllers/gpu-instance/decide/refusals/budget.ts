import { amountText, isSpent, type Line } from '../../../../ledger/budget.ts';
import type { Month } from '../../../../ledger/month.ts';
import { whoCanLift } from '../../../../inventory/ceilings.ts';
import {
  type BudgetWords,
  OF_TENANT,
  renewal,
  sentenceOf,
  spentSentence,
} from '../../../../resources/tenants/budget-words.ts';
import type { TenantLimitSpec } from '../../../../resources/tenants/tenant-limit.ts';

export function tenantBudget(policies: TenantLimitSpec['policies']): BudgetWords {
  return { what: OF_TENANT, lift: whoCanLift(policies, 'budget') };
}

function renewsAt({ to }: Month): string {
  return new Date(to).toISOString();
}

/** That a part of a budget is spent, when it renews, and who can raise it. */
export function spentWords(line: Line, month: Month, words: BudgetWords): string {
  const amounts = { unit: line.unit, max: amountText(line, line.max), spent: amountText(line, line.spent) };
  return spentSentence(amounts, { month: month.name, renewsAt: renewsAt(month) }, words);
}

/** Why a budget has no room for an instance that needs this much of the line. */
export function budgetRefusal(line: Line, needed: bigint, month: Month, words: BudgetWords): string {
  if (isSpent(line)) return spentWords(line, month, words);
  const { unit, spent, max, reserved } = line;
  const [most, gone, kept, needs] = [max, spent, reserved, needed].map((amount) => amountText(line, amount));
  const said = `${sentenceOf(words.what)} for ${month.name} has no room for the first hour of this instance, which is ${needs} ${unit}: of ${most} ${unit}, ${gone} are spent, and ${kept} are set aside for the first hour of other instances.`;
  return `${said} Stop another instance, or choose a smaller one. ${renewal(renewsAt(month))} ${words.lift}`;
}

/** That so many per cent are spent. */
export function warningWords(percent: number, line: Line, month: Month, { what, lift }: BudgetWords): string {
  const { unit, spent, max } = line;
  const said = `${percent} per cent of ${what} for ${month.name} are spent: ${amountText(line, spent)} of ${amountText(line, max)} ${unit}.`;
  return `${said} When all of it is spent, the instances that draw on it are stopped. ${renewal(renewsAt(month))} ${lift}`;
}
