import type { Interval } from '../resources/instances/interval.ts';
import { costOf, parseMoney } from '../resources/money.ts';
import { gpuMsOf } from './interval.ts';
import { type Month, monthOf } from './month.ts';

/** Exact sums: milliseconds times GPUs, and millionths of a currency unit. */
export interface Amount {
  gpuMs: bigint;
  cost: bigint;
}

export const NO_AMOUNT: Amount = { gpuMs: 0n, cost: 0n };

export function plus(left: Amount, right: Amount): Amount {
  return { gpuMs: left.gpuMs + right.gpuMs, cost: left.cost + right.cost };
}

function least(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}

/** What an interval came to until a moment. At its end it is what the bill says, whatever today's code would compute. */
function until(interval: Interval, moment: number): Amount {
  const whole = { gpuMs: BigInt(Math.round(interval.gpuSeconds * 1000)), cost: parseMoney(interval.cost) };
  if (moment >= Date.parse(interval.to)) return whole;
  const ms = moment - Date.parse(interval.from);
  // Without a price it is a sum of many starts, which counts for the moment when they ended.
  if (ms <= 0 || interval.pricePerHour === undefined) return NO_AMOUNT;
  return {
    gpuMs: least(whole.gpuMs, BigInt(gpuMsOf(interval, ms))),
    cost: least(whole.cost, parseMoney(costOf(interval.pricePerHour, ms))),
  };
}

/**
 * What of an interval falls between two moments, milliseconds since the epoch. The parts of an interval that is cut
 * anywhere add up to the whole, to the smallest unit: each is the difference of two sums.
 */
export function amountBetween(interval: Interval, from: number, to: number): Amount {
  const before = until(interval, from);
  const after = until(interval, to);
  return { gpuMs: after.gpuMs - before.gpuMs, cost: after.cost - before.cost };
}

/** What of an interval falls into one month. */
interface MonthPart extends Amount {
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
