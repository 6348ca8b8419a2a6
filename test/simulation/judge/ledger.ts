import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../src/resources/usage-record.ts';
import type { Exported } from '../../../src/sink/export.ts';
import type { ApiServer } from '../api/server.ts';
import type { MemorySink } from '../berth/memory-sink.ts';
import type { Watch } from './owners.ts';

/** A start that some months share is rounded in each. */
const CLOSE = 0.000_01;

/** For so long a replica remembers who went, and operators are to leave records a day. */
const MEMORY_MS = 3_600_000;

interface Bill {
  interval: Interval;
  namespace: string;
  instance: string;
  /** An operator deleted the record with it; `isOver`: no instance had it any more. */
  deleted: { isOver: boolean } | undefined;
}

function billText({ from, to, cost, currency, gpuSeconds }: Interval): string {
  return `${from} to ${to}: ${gpuSeconds} GPU seconds for ${cost} ${currency}`;
}

/** Remembers each bill that ever was, also of records that were deleted, and what corrections say. */
export class Ledger {
  readonly #watch: Watch;
  readonly #api: ApiServer;
  readonly #isCleared: (uid: string) => boolean;
  /** By uid of the instance, then by number of the start. */
  readonly #bills = new Map<string, Map<number, Bill>>();
  /** What each correction adds to a bill, by the beginning of the id of its charge. */
  readonly #corrections = new Map<string, number>();

  /** `isCleared`: somebody took off what keeps an instance until it is billed, so several replicas may have seen it go. */
  constructor(watch: Watch, api: ApiServer, isCleared: (uid: string) => boolean) {
    this.#watch = watch;
    this.#api = api;
    this.#isCleared = isCleared;
    api.follow(({ kind: { type }, before, after }) => {
      if (type.kind !== USAGE_RECORDS.kind) return;
      if (before === undefined) this.#seeNew(after as UsageRecord);
      if (after === undefined) this.#seeGone(before as UsageRecord);
    });
  }

  /** Bills of an instance whose records were deleted. */
  deletedOf(uid: string): Interval[] {
    return [...(this.#bills.get(uid)?.values() ?? [])].flatMap(({ interval, deleted }) => (deleted ? [interval] : []));
  }

  forget(uid: string): void {
    this.#bills.delete(uid);
  }

  #seeNew({ metadata: { namespace = '', name }, spec }: UsageRecord): void {
    const { adjustment, instanceUid, instance, intervals = [] } = spec;
    if (adjustment !== undefined) {
      const cost = adjustment.type === 'Credit' ? -Number(spec.cost) : Number(spec.cost);
      this.#corrections.set(`adjustment/${namespace}/${name}/`, cost);
      return;
    }
    const known = this.#bills.get(instanceUid) ?? new Map<number, Bill>();
    this.#bills.set(instanceUid, known);
    for (const interval of intervals) {
      const before = known.get(interval.start);
      known.set(interval.start, { interval, namespace, instance, deleted: undefined });
      if (before === undefined || this.#isCleared(instanceUid)) continue;
      const said = `start ${interval.start} of ${namespace}/${instance}`;
      if (billText(before.interval) !== billText(interval))
        this.#watch.blame(3, `${said} is billed anew: ${billText(interval)}, and was ${billText(before.interval)}`);
      if (before.deleted?.isOver === true)
        this.#watch.blame(3, `${said} is billed again, though its record ${name} was deleted`);
    }
  }

  #seeGone({ spec: { instanceUid, intervals = [] }, metadata: { namespace } }: UsageRecord): void {
    const found = this.#api.find<GpuInstance>(GPU_INSTANCES, { namespace, name: this.#nameOf(instanceUid) });
    const status = found?.metadata.uid === instanceUid ? found.status : undefined;
    for (const { start } of intervals) {
      const bill = this.#bills.get(instanceUid)?.get(start);
      if (bill === undefined) continue;
      const isKnown = status?.intervals?.some((one) => one.start === start) ?? false;
      // Another leader may have seen it go, and makes sure of its bill.
      const isNew = status === undefined && Date.parse(bill.interval.to) + MEMORY_MS > this.#watch.time.wall;
      bill.deleted = { isOver: !isKnown && !isNew };
    }
  }

  #nameOf(uid: string): string {
    const [bill] = this.#bills.get(uid)?.values() ?? [];
    return bill?.instance ?? '';
  }

  /** A run that reached everything finds no difference, and each row says what a record or a correction says. */
  exported({ tally }: Exported, sink: MemorySink): void {
    const { differing, unreadable } = tally;
    const first = differing?.first ?? unreadable?.first ?? '';
    if (!tally.isSound() && !this.#isOfCleared(sink, first))
      this.#watch.blame(3, `the sink and the cluster differ: ${first || 'a charge is missing'}`);
    const sums = new Map<string, number>();
    for (const { id, uid, cost } of sink.charges()) {
      if (id.startsWith('adjustment/')) {
        const due = this.#corrections.get(id.slice(0, id.lastIndexOf('/') + 1));
        if (due !== cost) this.#watch.blame(3, `the sink has ${cost} for ${id}, which says ${due}`);
        continue;
      }
      const start = Number(id.split('/')[3]);
      sums.set(`${uid} ${start}`, (sums.get(`${uid} ${start}`) ?? 0) + cost);
    }
    for (const [key, sum] of sums) {
      const [uid = '', start = ''] = key.split(' ');
      const bill = this.#bills.get(uid)?.get(Number(start));
      if (bill !== undefined && !this.#isCleared(uid) && Math.abs(Number(bill.interval.cost) - sum) > CLOSE)
        this.#watch.blame(
          3,
          `the sink has ${sum} for start ${start} of ${bill.namespace}/${bill.instance}, which cost ${bill.interval.cost}`,
        );
    }
  }

  #isOfCleared(sink: MemorySink, id: string): boolean {
    return this.#isCleared(sink.charges().find((one) => one.id === id)?.uid ?? '');
  }
}
