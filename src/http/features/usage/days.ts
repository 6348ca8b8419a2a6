import { monthIn } from '../../../ledger/month.ts';
import { dayText, startOfDay } from '../../../ledger/report.ts';
import type { UsageQuery } from './schema.ts';

const DAY_MS = 86_400_000;
/** The days of a question. */
export interface Days {
  /** First and last day, such as 2026-11-23. */
  first: string;
  last: string;
  /** Milliseconds since the epoch: where the first day begins, and the day after the last one; equal without a day. */
  from: number;
  to: number;
}

/** The days that the query names; by default those of this month. */
export function daysOf({ from, to }: Pick<UsageQuery, 'from' | 'to'>, now: number): Days {
  const last = to ?? (from !== undefined && from > dayText(now) ? from : dayText(now));
  const first = from ?? `${monthIn(last)}-01`;
  const start = Date.parse(first);
  const end = startOfDay(Date.parse(last)) + DAY_MS;
  return { first, last, from: start, to: Math.max(start, end) };
}
