import { ENDED_LABEL } from '../resources/usage-record.ts';

/** Months before one whose records are left out by their label. Older ones are read, and count for nothing. */
const MONTHS_BACK = 24;
/** No record is older. */
const FIRST_MS = Date.UTC(2020, 0, 1);

/** A calendar month of UTC. */
export interface Month {
  /** Such as 2026-11. */
  name: string;
  /** Milliseconds since the epoch; `to` is the first moment of the next month. */
  from: number;
  to: number;
}

/** The month of a day or a time of UTC as text, such as 2026-11 of 2026-11-23. */
export function monthIn(time: string): string {
  return time.slice(0, 7);
}

export function monthOf(now: number): Month {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const from = Date.UTC(year, month);
  return { name: monthIn(new Date(from).toISOString()), from, to: Date.UTC(year, month + 1) };
}

/** The months before that of `ms`, and before 2020, the nearest first, as labels have them: 2026-10. */
export function monthsBefore(ms: number): string[] {
  const date = new Date(Math.max(ms, FIRST_MS));
  return Array.from({ length: MONTHS_BACK }, (_, back) =>
    monthIn(new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back - 1)).toISOString()),
  );
}

/** Label selector of the records that ended in the month of `ms` or later. Those without the label are among them. */
export function endedFrom(ms: number): string {
  return `${ENDED_LABEL} notin (${monthsBefore(ms).join(',')})`;
}
