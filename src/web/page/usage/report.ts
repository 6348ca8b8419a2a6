import type { UsageAnswer } from '../../../wire/records.ts';

type Item = UsageAnswer['items'][number];

const DAY_MS = 86_400_000;

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** First and last day, in UTC. */
export interface Period {
  from: string;
  to: string;
}

/** The periods that people ask for most. @param now ms since the epoch */
export function periods(now: number): { name: string; title: string; period: Period }[] {
  const date = new Date(now);
  const monthStart = (back: number): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back, 1);
  return [
    { name: 'month', title: 'This month', period: { from: dayText(monthStart(0)), to: dayText(now) } },
    {
      name: 'last',
      title: 'Last month',
      period: { from: dayText(monthStart(1)), to: dayText(monthStart(0) - DAY_MS) },
    },
    { name: '30', title: '30 days', period: { from: dayText(now - 29 * DAY_MS), to: dayText(now) } },
    { name: '90', title: '90 days', period: { from: dayText(now - 89 * DAY_MS), to: dayText(now) } },
  ];
}

/** The days of a report, those without usage too. Midnights in seconds since the epoch, as charts take them. */
export function seriesOf(
  { from, to, items }: UsageAnswer,
  currency: string,
  value: (item: Item) => number,
): [number[], number[]] {
  const known = new Map(items.filter((one) => one.currency === currency).map((one) => [one.group, value(one)]));
  const [days, values]: [number[], number[]] = [[], []];
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= Date.parse(`${to}T00:00:00Z`); at += DAY_MS) {
    days.push(at / 1000);
    values.push(known.get(dayText(at)) ?? 0);
  }
  return [days, values];
}

export function gpuHours({ gpu_seconds: seconds }: Pick<Item, 'gpu_seconds'>): number {
  return seconds / 3600;
}

/** Input and output tokens together. */
export function tokens({
  input_tokens: input,
  output_tokens: output,
}: Pick<Item, 'input_tokens' | 'output_tokens'>): number {
  return input + output;
}

/** Decimals that tell the lines of a chart apart, which are a step from each other. */
export function decimalsOf(step: number): number {
  return Math.max(0, -Math.floor(Math.log10(step)));
}

/** The kind and the name of who spent, such as `person` and `https://id.example.com#ann`; the name is empty where there is none. */
export function ownerOf(group: string): [kind: string, name: string] {
  const end = group.indexOf('/');
  return end === -1 ? [group, ''] : [group.slice(0, end), group.slice(end + 1)];
}

/** Whether a group is a model, and no instance. */
export function isModel(group: string): boolean {
  return group.startsWith('model/');
}
