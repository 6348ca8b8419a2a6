import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { UsageRecord } from '../resources/usage-record.ts';
import { endedIntervals, intervalOf } from './interval.ts';
import type { Billed } from './report.ts';

/** The bills that the status of an instance has: ended starts without a usage record, and the current start. */
export function billsOfInstance({ metadata, status }: GpuInstance, now: number): Billed[] {
  if (status === undefined) return [];
  const { name: instance, uid = '' } = metadata;
  const ended = endedIntervals(status).map((interval) => ({ instance, uid, interval, open: false }));
  const end = status.ending === undefined ? now : Date.parse(status.ending.at);
  const interval = intervalOf(status, end);
  return interval === undefined ? ended : [...ended, { instance, uid, interval, open: status.ending === undefined }];
}

/** Records without intervals, those of earlier releases and adjustments, count for the moment that they name. */
export function billsOfRecord({ spec }: UsageRecord): Billed[] {
  const { instance, instanceUid: uid, intervals, gpuSeconds, cost, currency, product, gpuCount, endedAt } = spec;
  const sum = { start: 0, from: endedAt, to: endedAt, product, gpuCount, gpuSeconds, cost, currency };
  if (spec.adjustment) return [{ instance, uid, interval: sum, open: false, adjustment: spec.adjustment.type }];
  return (intervals ?? [sum]).map((interval) => ({ instance, uid, interval, open: false }));
}

/**
 * Brings together what instances and usage records say. Read the instances first: a record is written before the
 * instance forgets what is in it, so nothing is missing then, and what both have counts once.
 */
export class Bills {
  readonly #add: (billed: Billed) => void;
  /** Bills of instances by uid. Of each start that a record has, the record's counts. */
  readonly #unrecorded: Map<string, Billed[]>;

  /** `now`: milliseconds since the epoch. `add` gets each bill once. */
  constructor(instances: readonly GpuInstance[], now: number, add: (billed: Billed) => void) {
    this.#add = add;
    this.#unrecorded = new Map(instances.map((one) => [one.metadata.uid ?? '', billsOfInstance(one, now)]));
  }

  addRecord(record: UsageRecord): void {
    const bills = billsOfRecord(record);
    for (const billed of bills) this.#add(billed);
    const { instanceUid: uid, intervals, adjustment } = record.spec;
    const left = this.#unrecorded.get(uid);
    if (left === undefined || adjustment !== undefined) return;
    const starts = new Set(bills.map(({ interval }) => interval.start));
    // A record without intervals is for all starts of its instance.
    const others = intervals === undefined ? [] : left.filter(({ interval }) => !starts.has(interval.start));
    this.#unrecorded.set(uid, others);
  }

  /** Adds the bills that no record has. Call it once, after every record. */
  addUnrecorded(): void {
    for (const bills of this.#unrecorded.values()) for (const billed of bills) this.#add(billed);
    this.#unrecorded.clear();
  }
}
