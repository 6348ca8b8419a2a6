import { amountBetween, NO_AMOUNT, plus } from '../../../ledger/amount.ts';
import { endedIntervals, intervalOf } from '../../../ledger/interval.ts';
import { monthIn } from '../../../ledger/month.ts';
import { compareText } from '../../../lib/compare.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { type Interval, MOST_INTERVALS } from '../../../resources/instances/interval.ts';
import { addMoney, formatMoney } from '../../../resources/money.ts';
import { ENDED_LABEL, type UsageRecord } from '../../../resources/usage-record.ts';
import { usageNameOf } from './names.ts';

type Usage = NonNullable<GpuInstanceStatus['usage']>;
type Bill = Pick<GpuInstanceStatus, 'usage' | 'intervals' | 'lastProduct'>;

function withInterval(before: Usage | undefined, { gpuSeconds, cost, currency, to }: Interval): Usage {
  return {
    gpuSeconds: Math.round(((before?.gpuSeconds ?? 0) + gpuSeconds) * 1000) / 1000,
    // A sum of two currencies is no amount.
    cost: before?.currency === currency ? addMoney(before.cost, cost) : cost,
    currency,
    until: to,
  };
}

/**
 * What the status says of the bill when the current start, if there is one, ends at `end`. The status write that removes
 * the claim writes it too, so a start is counted once, however often the write is tried.
 */
export function closedBill(status: GpuInstanceStatus, end: number): Bill {
  const { claim, usage } = status;
  if (claim === undefined) return { ...(usage && { usage }), ...(status.intervals && { intervals: status.intervals }) };
  const lastProduct = { product: claim.product, gpuCount: claim.gpuCount };
  const interval = intervalOf(status, end);
  const intervals = [...endedIntervals(status), ...(interval ? [interval] : [])];
  // A start whose container never ran cost nothing, in the currency of its place.
  const none = { gpuSeconds: 0, cost: '0.00', currency: claim.currency };
  return { usage: interval ? withInterval(usage, interval) : (usage ?? none), intervals, lastProduct };
}

/** Whether the status has room for no more ended starts: they go to a usage record before the next start. */
export function hasFullBill({ status }: Pick<GpuInstance, 'status'>): boolean {
  return (status?.intervals?.length ?? 0) >= MOST_INTERVALS;
}

/** One usage record has starts of one currency, so that their sum is an amount. */
function byCurrency(intervals: readonly Interval[]): Interval[][] {
  const groups: Interval[][] = [];
  for (const interval of intervals) {
    const last = groups.at(-1);
    if (last?.[0]?.currency === interval.currency) last.push(interval);
    else groups.push([interval]);
  }
  return groups;
}

function recordSpec(instance: GpuInstance, intervals: Interval[], now: number): UsageRecord['spec'] {
  const { metadata, spec, status = {} } = instance;
  const { usage, lastProduct, stages } = status;
  const [first] = intervals;
  const last = intervals.at(-1);
  const sum = intervals.map((interval) => amountBetween(interval, -Infinity, Infinity)).reduce(plus, NO_AMOUNT);
  return {
    instance: metadata.name,
    ...(spec.displayName && { displayName: spec.displayName }),
    instanceUid: metadata.uid ?? '',
    product: last?.product ?? lastProduct?.product ?? '',
    gpuCount: last?.gpuCount ?? lastProduct?.gpuCount ?? 0,
    gpuSeconds: Number(sum.gpuMs) / 1000,
    cost: formatMoney(sum.cost),
    currency: last?.currency ?? usage?.currency ?? '',
    ...(first && { startedAt: first.from }),
    endedAt: stages?.stopped ?? new Date(now).toISOString(),
    intervals,
  };
}

/**
 * The records of the starts that have ended since the last record. Their names come from the uid and their number: each
 * can be written once only. The first one is there for every instance that had a place, also when it cost nothing.
 */
export function usageRecords(instance: GpuInstance, now: number): UsageRecord[] {
  const { metadata, status = {} } = instance;
  const { records = 0, incarnation = 0 } = status;
  const groups = byCurrency(endedIntervals(status));
  if (groups.length === 0 && records === 0 && incarnation > 0) groups.push([]);
  return groups.map((intervals, index) => {
    const spec = recordSpec(instance, intervals, now);
    // Who asks for a month leaves out records of months before: an earlier start may have ended later, by a clock ahead.
    const month = monthIn(
      intervals
        .map(({ to }) => to)
        .toSorted(compareText)
        .at(-1) ?? spec.endedAt,
    );
    return {
      metadata: {
        name: usageNameOf(instance, records + index),
        ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
        labels: { [ENDED_LABEL]: month },
      },
      spec,
    };
  });
}

/** The status once these records are written: it forgets the starts that are in them. */
export function recordedStatus({ status = {} }: GpuInstance, written: number): GpuInstanceStatus {
  return { ...status, intervals: [], records: (status.records ?? 0) + written };
}
