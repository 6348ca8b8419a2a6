import type { InstanceRecord } from '../../../wire/records.ts';
import { money } from './words.ts';

type Priced = Pick<InstanceRecord, 'price_per_hour' | 'currency'>;

/** Amounts of several currencies, which nobody can add up. */
export function joined(
  amounts: readonly (readonly [currency: string, amount: number | string])[],
  textOf: (amount: number | string, currency: string) => string = money,
): string {
  return amounts.map(([currency, amount]) => textOf(amount, currency)).join(' + ');
}

/** What instances cost in an hour, by currency; empty where none has a price. */
export function ratesOf(instances: readonly Priced[]): [currency: string, amount: number][] {
  const sums = new Map<string, number>();
  for (const { price_per_hour: price, currency } of instances) {
    if (price !== null && currency !== null) sums.set(currency, (sums.get(currency) ?? 0) + Number(price));
  }
  return [...sums];
}
