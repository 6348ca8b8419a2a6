import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { meterEnded } from '../resources/instances/meter.ts';
import type { UsageRecord } from '../resources/usage-record.ts';
import { assertReadable } from './amount.ts';
import { endedIntervals, intervalOf } from './interval.ts';
import type { Billed } from './report.ts';

/** Whose starts a status has: those of the instance of before, as long as a backup brought it back and nobody looked. */
export function billedUid({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): string {
  return status?.uid ?? metadata.uid ?? '';
}

/** The bills of the status of an instance that grow no more: of ended starts without a usage record, and of one that ends. */
export function endedBills({ metadata, status }: GpuInstance): Billed[] {
  if (status === undefined) return [];
  const { name: instance } = metadata;
  const uid = billedUid({ metadata, status });
  const last = status.ending && intervalOf(status, meterEnded(status.ending));
  const intervals = [...endedIntervals(status), ...(last ? [last] : [])];
  return intervals.map((interval) => ({ instance, uid, interval, open: false }));
}

/** The bills that the status of an instance has: those, and that of the start that runs. */
export function billsOfInstance(found: GpuInstance, now: number): Billed[] {
  const { metadata, status } = found;
  const ended = endedBills(found);
  const interval = status === undefined || status.ending !== undefined ? undefined : intervalOf(status, now);
  if (interval === undefined) return ended;
  return [...ended, { instance: metadata.name, uid: billedUid(found), interval, open: true }];
}

/**
 * Records without intervals, those of earlier releases and adjustments, count for the moment that they name. Throws
 * UnreadableError where an amount or a time is none.
 */
export function billsOfRecord({ spec }: UsageRecord): Billed[] {
  const { instance, instanceUid: uid, intervals, gpuSeconds, cost, currency, product, gpuCount, endedAt } = spec;
  const sum = { start: 0, from: endedAt, to: endedAt, product, gpuCount, gpuSeconds, cost, currency };
  const all = spec.adjustment ? [sum] : (intervals ?? [sum]);
  for (const interval of all) assertReadable(interval);
  const adjustment = spec.adjustment && { adjustment: spec.adjustment.type };
  return all.map((interval) => ({ instance, uid, interval, open: false, ...adjustment }));
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
    const bills = instances.flatMap((one) => billsOfInstance(one, now));
    this.#unrecorded = Map.groupBy(bills, ({ uid }) => uid);
  }

  /** Throws UnreadableError, and counts nothing of a record with an amount or a time that is none. */
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
