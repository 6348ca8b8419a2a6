import { money } from '../parts/words.ts';

/** Digits that show a small amount, too: the first minutes of a cheap GPU cost less than a cent. */
function digitsOf(amount: number): number {
  return Math.abs(amount) < 1 ? 4 : 2;
}

export function amountText(amount: number): string {
  return amount.toLocaleString(undefined, { maximumFractionDigits: digitsOf(amount) });
}

export function costText(cost: number | string, currency: string): string {
  return money(cost, currency, digitsOf(Number(cost)));
}
