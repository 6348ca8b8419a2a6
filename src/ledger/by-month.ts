import type { Interval } from '../resources/instances/interval.ts';
import { type Amount, amountBetween } from './amount.ts';
import { type Month, monthOf } from './month.ts';

/** What of an interval falls into one month. */
export interface MonthPart extends Amount {
  month: Month;
}

/**
 * An interval, split where months end. The parts add up to it, to the smallest unit. Parts of nothing are left out. What
 * counts for the first moment of a month belongs to the month before, as in a report.
 */
export function partsByMonth(interval: Interval): MonthPart[] {
  const end = Date.parse(interval.to);
  const parts: MonthPart[] = [];
  for (let month = monthOf(Date.parse(interval.from) - 1); month.from <= end; month = monthOf(month.to)) {
    const amount = amountBetween(interval, month.from, month.to);
    if (amount.gpuMs !== 0n || amount.cost !== 0n) parts.push({ month, ...amount });
  }
  return parts;
}
