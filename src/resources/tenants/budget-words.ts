import { whoCanChangeKey } from './who-can-change.ts';

/** Whose budget it is, in words. */
export interface BudgetWords {
  /** Such as: the budget of this tenant. */
  what: string;
  /** Who can raise it, as a sentence. */
  lift: string;
}

export const OF_TENANT = 'the budget of this tenant';

/** @param name of the APIKey */
export function keyBudget(name: string): BudgetWords {
  return { what: `the budget of APIKey ${name}`, lift: whoCanChangeKey('budget', name) };
}

export function sentenceOf(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** @param renewsAt as in RFC 3339 */
export function renewal(renewsAt: string): string {
  return `The budget renews at ${renewsAt}.`;
}

/** That a part of a budget is spent, when it renews, and who can raise it. Amounts as texts. */
export function spentSentence(
  { unit, max, spent }: { unit: string; max: string; spent: string },
  { month, renewsAt }: { month: string; renewsAt: string },
  { what, lift }: BudgetWords,
): string {
  return `${sentenceOf(what)} for ${month} is spent: ${spent} of ${max} ${unit}. ${renewal(renewsAt)} ${lift}`;
}
