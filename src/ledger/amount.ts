import type { Interval } from '../resources/instances/interval.ts';
import { costOf, parseMoney } from '../resources/money.ts';
import { gpuMsOf } from './interval.ts';
import { type Month, monthOf } from './month.ts';
import { silentMs } from './silence.ts';

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

/**
 * A record has an amount or a time that is none, as only who may correct bills can write it. Nothing of the record is
 * counted: half of a record would be a wrong bill, and one that nobody notices.
 */
export class UnreadableError extends RangeError {
  override name = 'UnreadableError';
}

/** The amount that a record has as text. */
export function readAmount(text: string): bigint {
  try {
    return parseMoney(text);
  } catch (error) {
    throw new UnreadableError(error instanceof Error ? error.message : String(error));
  }
}

/** Throws UnreadableError unless every amount and time of the interval can be counted with. */
export function assertReadable({ from, to, gpuSeconds, cost, pricePerHour = '0' }: Interval): void {
  for (const amount of [cost, pricePerHour]) readAmount(amount);
  for (const time of [from, to])
    if (Number.isNaN(Date.parse(time))) throw new UnreadableError(`"${time}" is not a time`);
  if (Date.parse(from) > Date.parse(to)) throw new UnreadableError(`it ends at ${to}, before it begins at ${from}`);
  if (!Number.isFinite(gpuSeconds * 1000)) throw new UnreadableError(`${gpuSeconds} are no GPU seconds`);
}

/** What an interval came to until a moment. At its end it is what the bill says, whatever today's code would compute. */
function until(interval: Interval, moment: number): Amount {
  const whole = { gpuMs: BigInt(Math.round(interval.gpuSeconds * 1000)), cost: parseMoney(interval.cost) };
  const [from, to] = [Date.parse(interval.from), Date.parse(interval.to)];
  // Time counts up to its end, and is over then. What counts for a moment, such as a correction, comes with that moment.
  if (from < to ? moment >= to : moment > to) return whole;
  const ms = moment - from - silentMs(interval.silences, from, moment);
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
 * counts for a moment belongs to the month of that moment, as in a report.
 */
export function partsByMonth(interval: Interval): MonthPart[] {
  const end = Date.parse(interval.to);
  const parts: MonthPart[] = [];
  for (let month = monthOf(Date.parse(interval.from)); month.from <= end; month = monthOf(month.to)) {
    const amount = amountBetween(interval, month.from, month.to);
    if (amount.gpuMs !== 0n || amount.cost !== 0n) parts.push({ month, ...amount });
  }
  return parts;
}
