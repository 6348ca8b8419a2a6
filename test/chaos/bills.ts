import type { Interval } from '../../src/resources/instances/interval.ts';
import type { UsageRecordSpec } from '../../src/resources/usage-record.ts';

/** A pod of an instance, as the observer saw it. Times are milliseconds since the epoch. */
export interface SeenStart {
  /** Number of the start, which is in the name of its pod. */
  start: number;
  pod: string;
  podUid: string;
  instance: string;
  /** Whether a kubelet ran its containers. What kwok says of containers is no time of anything. */
  real: boolean;
  created: number;
  /** When its container ran for the first time, to the second. */
  startedAt?: number;
  finishedAt?: number;
  /** When its end was decided, by the status of its instance. */
  decidedAt?: number;
  goneAt?: number;
}

/** What an instance is billed for. */
export interface Account {
  name: string;
  /** The bills in its status, while it is there. */
  intervals: readonly Interval[];
  records: readonly Pick<UsageRecordSpec, 'intervals' | 'gpuSeconds' | 'cost'>[];
  /** GPU seconds of the starts that have ended, as its status adds them up. */
  used?: number | undefined;
  /** Number of the start whose place it has now. */
  open?: number | undefined;
}

/** Kubelets cut their times to the second. */
const SECOND = 1000;
const GRACE = 30_000;
/** The controller may have been away when a pod went. */
const LATE = 60_000;
/** GPU seconds, and units of the currency, that rounding may take. */
const ROUNDING = 0.002;

function billedMs({ from, to, silences = [] }: Interval): number {
  const whole = Date.parse(to) - Date.parse(from);
  return silences.reduce((left, silence) => left - (Date.parse(silence.to ?? to) - Date.parse(silence.from)), whole);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function differ(a: number, b: number, count = 1): boolean {
  return Math.abs(a - b) > ROUNDING * Math.max(1, count);
}

/** Each start once, the first of them first; and what is wrong with those that are there twice. */
function onceEach({ name, intervals, records }: Account): { bills: Interval[]; wrong: string[] } {
  const all = [...records.flatMap((record) => record.intervals ?? []), ...intervals];
  const byStart = [...Map.groupBy(all, ({ start }) => start)];
  // A start is in its record and in the status until the next write of the status.
  const twice = byStart.filter(([, same]) => new Set(same.map((one) => JSON.stringify(one))).size > 1);
  return {
    bills: byStart.flatMap(([, [first]]) => (first === undefined ? [] : [first])).toSorted((a, b) => a.start - b.start),
    wrong: twice.map(([start]) => `${name}: start ${start} has two bills that differ`),
  };
}

function sums({ name, records, used }: Account, bills: readonly Interval[]): string[] {
  const wrong = bills.flatMap((bill) => {
    const seconds = billedMs(bill) / 1000;
    const isShare = bill.gpuShare !== undefined;
    const gpu = isShare || !differ(bill.gpuSeconds, seconds * bill.gpuCount, bill.gpuCount);
    const cost = !differ(Number(bill.cost), (seconds * Number(bill.pricePerHour ?? 0)) / 3600);
    return gpu && cost ? [] : [`${name}: start ${bill.start} ran for ${seconds} s: ${JSON.stringify(bill)}`];
  });
  for (const { intervals = [], gpuSeconds, cost } of records) {
    const parts = [sum(intervals.map((one) => one.gpuSeconds)), sum(intervals.map((one) => Number(one.cost)))] as const;
    if (differ(gpuSeconds, parts[0], intervals.length) || differ(Number(cost), parts[1], intervals.length))
      wrong.push(`${name}: a record has ${gpuSeconds} GPU seconds and ${cost}, its starts ${parts.join(' and ')}`);
  }
  const total = sum(bills.map(({ gpuSeconds }) => gpuSeconds));
  if (used !== undefined && differ(used, total, bills.length))
    wrong.push(`${name}: the status has ${used} GPU seconds, its starts ${total}`);
  return wrong;
}

function overlaps(name: string, bills: readonly Interval[]): string[] {
  return bills.flatMap(({ start, from }, index) => {
    const before = bills[index - 1];
    if (before === undefined || Date.parse(from) >= Date.parse(before.to)) return [];
    return [`${name}: start ${start} is billed from ${from}, and start ${before.start} to ${before.to}`];
  });
}

/** What a bill may begin and end with, by what the observer saw of its pod. */
function bounds(
  bill: Interval,
  seen: SeenStart,
  before: Interval | undefined,
): Record<'from' | 'to', readonly [number, number]> {
  const { real, created, startedAt, finishedAt, decidedAt, goneAt = Number.POSITIVE_INFINITY } = seen;
  const notBefore = before === undefined ? 0 : Date.parse(before.to);
  const known = real && startedAt !== undefined;
  const began = Math.max(known ? startedAt : created, notBefore);
  // A place that others ended for is billed from its grant, which comes before its pod.
  const least = bill.byPreemption === true ? Math.max(created - GRACE, notBefore) : began;
  const from = [least - SECOND, known ? began + 2 * SECOND : goneAt + LATE] as const;
  if (!real || finishedAt === undefined) return { from, to: [created - SECOND, goneAt + LATE] };
  if (decidedAt === undefined) return { from, to: [finishedAt - SECOND, Math.max(finishedAt, goneAt) + LATE] };
  // The grace bounds what a program costs that does not end.
  const ended = Math.min(finishedAt, decidedAt + GRACE);
  return { from, to: [ended - SECOND, Math.max(ended, decidedAt) + 2 * SECOND] };
}

function againstSeen(name: string, bills: readonly Interval[], seen: ReadonlyMap<number, SeenStart>): string[] {
  return bills.flatMap((bill, index) => {
    const start = seen.get(bill.start);
    if (start === undefined) return [`${name}: start ${bill.start} is billed, and nobody saw its pod`];
    const { from, to } = bounds(bill, start, bills[index - 1]);
    const isWithin = (time: string, [least, most]: readonly [number, number]) =>
      Date.parse(time) >= least && Date.parse(time) <= most;
    if (isWithin(bill.from, from) && isWithin(bill.to, to)) return [];
    return [
      `${name}: start ${bill.start} is billed from ${bill.from} to ${bill.to}, and was seen as ${inWords(start)}`,
    ];
  });
}

/** How long it ran for certain: of a start that nobody saw end, until its pod was gone. */
function ranMs({ startedAt, finishedAt, goneAt }: SeenStart): number {
  return startedAt === undefined ? 0 : (finishedAt ?? goneAt ?? startedAt) - startedAt;
}

function inWords({ created, startedAt, finishedAt, decidedAt, goneAt }: SeenStart): string {
  const times = { created, startedAt, decidedAt, finishedAt, goneAt };
  return Object.entries(times)
    .filter(([, time]) => time !== undefined)
    .map(([name, time]) => `${name} ${new Date(time ?? 0).toISOString()}`)
    .join(', ');
}

/** What is wrong with the bills of one instance at rest, by the pods of it that were seen. */
export function judgeBills(account: Account, starts: readonly SeenStart[]): string[] {
  const { name, open } = account;
  const seen = new Map(starts.map((one) => [one.start, one]));
  const { bills, wrong } = onceEach(account);
  const billed = new Set(bills.map(({ start }) => start));
  const unbilled = starts.filter((one) => {
    return one.real && one.start !== open && !billed.has(one.start) && ranMs(one) > 2 * SECOND;
  });
  return [
    ...wrong,
    ...sums(account, bills),
    ...overlaps(name, bills),
    ...againstSeen(name, bills, seen),
    ...unbilled.map((one) => `${name}: start ${one.start} ran and has no bill; it was seen as ${inWords(one)}`),
  ];
}
