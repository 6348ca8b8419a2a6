import type { Month } from '../ledger/month.ts';
import type { BudgetStatus } from '../resources/tenants/budget.ts';
import { whoCanChange, whoCanChangeKey } from '../resources/tenants/who-can-change.ts';
import { isSpent, type Line, lineText, periodOf } from './accounts.ts';

/** Whose budget it is, in words. */
export interface BudgetWords {
  /** Such as: the budget of this tenant. */
  what: string;
  /** Who can raise it, as a sentence. */
  lift: string;
}

/** @param policies the TenantPolicies that its ceilings come from; undefined where they are not at hand */
export function tenantBudget(policies: readonly string[] | undefined): BudgetWords {
  return { what: 'the budget of this tenant', lift: whoCanChange('budget', policies) };
}

/** @param name of the APIKey */
export function keyBudget(name: string): BudgetWords {
  return { what: `the budget of APIKey ${name}`, lift: whoCanChangeKey('budget', name) };
}

/** @param name of the APIKey, which was deleted */
export function deletedKeyBudget(name: string): BudgetWords {
  return {
    what: `the budget of APIKey ${name}, which was deleted,`,
    lift: `It holds for what the APIKey created. An administrator of the tenant can create APIKey ${name} anew with another limits.budget.`,
  };
}

function begin(sentence: string): string {
  return sentence.slice(0, 1).toUpperCase() + sentence.slice(1);
}

/** When a budget renews, and who can raise it. */
function outlook({ renewsAt }: Pick<BudgetStatus, 'renewsAt'>, { lift }: BudgetWords): string {
  return `The budget renews at ${renewsAt}. ${lift}`;
}

function amounts({ unit, spent, max }: BudgetStatus['lines'][number]): string {
  return `${spent} of ${max} ${unit}`;
}

/** That a part of a budget is spent. */
export function spentWords(
  line: BudgetStatus['lines'][number],
  period: Pick<BudgetStatus, 'month' | 'renewsAt'>,
  words: BudgetWords,
): string {
  return `${begin(words.what)} for ${period.month} is spent: ${amounts(line)}. ${outlook(period, words)}`;
}

/** That what is left of a part of a budget is held for model calls. */
export function heldWords(
  line: BudgetStatus['lines'][number],
  held: string,
  period: Pick<BudgetStatus, 'month' | 'renewsAt'>,
  words: BudgetWords,
): string {
  const said = `${begin(words.what)} for ${period.month} has no room for another model call at the moment: ${amounts(line)} are spent, and ${held} are held for the first hour of instances, and for calls that are under way or not counted yet.`;
  return `${said} Try again later, or send a smaller max_tokens. ${outlook(period, words)}`;
}

/** That so much of a budget is spent, part by part. */
export function warningWords(budget: BudgetStatus, words: BudgetWords): string {
  const said = `${budget.percent} per cent of ${words.what} for ${budget.month} are spent: ${budget.lines.map(amounts).join(', ')}.`;
  return `${said} When all of it is spent, the instances that draw on it are stopped. ${outlook(budget, words)}`;
}

/** Whole per cent of a line, rounded up: together these are more than it has where it has no room for them. */
function percentText({ max }: Line, amount: bigint): string {
  return `${amount <= 0n ? 0n : (amount * 100n + max - 1n) / max} per cent`;
}

/**
 * Why a budget has no room for an instance that needs this much of the line. Its amounts grow with each moment, and a
 * status that says them would be written at each look, which brings the next: so it says per cent.
 */
export function budgetRefusal(line: Line, needed: bigint, month: Month, words: BudgetWords): string {
  const period = periodOf(month);
  if (isSpent(line)) return spentWords(lineText(line), period, words);
  const { unit, max } = lineText(line);
  const [needs, spent, kept] = [needed, line.spent, line.reserved].map((amount) => percentText(line, amount));
  const said = `${begin(words.what)} for ${month.name} has no room for the first hour of this instance, which takes ${needs}: of ${max} ${unit}, ${spent} are spent, and ${kept} are set aside for the first hour of other instances.`;
  return `${said} Stop another instance, or choose a smaller one. ${outlook(period, words)}`;
}
