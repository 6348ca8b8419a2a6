import type { Interval } from '../../../src/resources/instances/interval.ts';
import { fractionOf } from '../../../src/resources/money.ts';
import type { UsageRecordSpec } from '../../../src/resources/usage-record.ts';

const HOUR_S = 3_600;
/** Times are rounded to milliseconds, of up to eight GPUs. */
const CLOSE = 0.02;

function spanOf({ from, to }: { from: string; to: string }): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

function isFar(a: number, b: number): boolean {
  return !(Math.abs(a - b) <= CLOSE);
}

function wrongOf(interval: Interval): string | undefined {
  const { start, gpuCount, gpuShare, gpuSeconds, cost, pricePerHour, silences = [] } = interval;
  const silent = silences.reduce((sum, { from, to = interval.to }) => sum + spanOf({ from, to }), 0);
  const seconds = spanOf(interval) - silent;
  if (isFar(gpuSeconds, seconds * gpuCount * fractionOf(gpuShare)))
    return `start ${start} has ${gpuSeconds} GPU seconds, of ${seconds} s with ${gpuCount} GPUs${gpuShare === undefined ? '' : ` of ${gpuShare}`}`;
  const due = (Number(pricePerHour) * seconds) / HOUR_S;
  return isFar(Number(cost), due)
    ? `start ${start} costs ${cost}, and ${seconds} s at ${pricePerHour} are ${due}`
    : undefined;
}

/** What does not add up in a usage record; undefined: nothing. */
export function wrongIn({ intervals = [], gpuSeconds, cost }: UsageRecordSpec): string | undefined {
  const sorted = intervals.toSorted((a, b) => a.start - b.start);
  const twice = sorted.find((one, index) => one.from < (sorted[index - 1]?.to ?? ''));
  if (twice !== undefined) return `start ${twice.start} begins before the one before it ended`;
  const sum = intervals.reduce((all, one) => all + one.gpuSeconds, 0);
  if (isFar(sum, gpuSeconds)) return `it has ${gpuSeconds} GPU seconds, and its starts ${sum}`;
  const costs = intervals.reduce((all, one) => all + Number(one.cost), 0);
  if (isFar(costs, Number(cost))) return `it costs ${cost}, and its starts ${costs}`;
  return intervals.map(wrongOf).find((wrong) => wrong !== undefined);
}
