import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import type { KubeObject } from '../../kube/types.ts';
import { Informer } from '../../kube/watch/reflector.ts';
import type { IndexFunctions, ReadStore } from '../../kube/watch/store.ts';
import { pick } from '../../lib/json.ts';
import type { Clock } from '../../lib/clock.ts';
import { UnreadableError } from '../../ledger/amount.ts';
import { billsOfRecord } from '../../ledger/bills.ts';
import { endedFrom, type Month, monthOf } from '../../ledger/month.ts';
import { RecordedSpending } from '../../budgets/spending.ts';
import type { Interval } from '../../resources/instances/interval.ts';
import { TOKEN_RECORDS, type TokenRecord } from '../../resources/token-record.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../resources/usage-record.ts';

export interface BudgetRecordsDeps {
  client: KubeClient;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  log: Logger;
}

/** What the usage records and token records of the current month say. */
export interface Recorded {
  spending: RecordedSpending;
  isRecorded: (uid: string, start: number) => boolean;
  /** Another number after every change of the usage records of a namespace. */
  revisionOf: (namespace: string) => number;
}

interface Reading extends Recorded {
  month: Month;
  isRead: () => boolean;
  stop: () => void;
}

/** Whether it was done; false where a record cannot be read. */
function isRead(read: () => void): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof UnreadableError) return false;
    throw error;
  }
}

const INDEXES = {
  // What a record does not count, the instance does.
  uid: (record) => (isRead(() => billsOfRecord(record)) ? [record.spec.instanceUid] : []),
} satisfies IndexFunctions<UsageRecord>;

/**
 * An interval without what says nothing of its bill. All else stays: a bill that lacked the silences of its node had other
 * parts in the months before and after.
 */
function counted(interval: Interval): Interval {
  const { pool: _pool, resourceName: _resource, isolation: _isolation, migProfile: _profile, ...rest } = interval;
  const { byPreemption: _byPreemption, diskGb: _disk, devices: _devices, ...bill } = rest;
  return bill;
}

/** What the cache keeps of the metadata: there may be a hundred thousand records in a month. */
function metadataOf<T extends KubeObject>({ metadata }: T): T['metadata'] {
  return pick(metadata, ['namespace', 'name', 'uid', 'resourceVersion']) as T['metadata'];
}

function pruneTokens(record: TokenRecord): TokenRecord {
  return { metadata: metadataOf(record), spec: record.spec };
}

function prune(record: UsageRecord): UsageRecord {
  const { spec } = record;
  const intervals = spec.intervals?.map(counted);
  return {
    metadata: metadataOf(record),
    spec: { ...spec, ...(intervals && { intervals }) },
  };
}

/**
 * Reads the usage records and token records of the current month once, and then follows them. It begins with the first question: where
 * nobody has a budget, nothing is read. In another month, also after a clock was set, it begins anew.
 */
export class BudgetRecords {
  readonly #deps: BudgetRecordsDeps;
  readonly #listeners = new Set<(namespace: string | undefined) => void>();
  #reading: Reading | undefined;

  constructor({ client, clock, random, log }: BudgetRecordsDeps) {
    this.#deps = { client, clock, random, log };
  }

  /** Calls the listener with each namespace of which a record came, went or grew; undefined for all, once they are read. */
  onChange(listener: (namespace: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What is recorded for the month of `now`, milliseconds since the epoch; undefined while it is being read. */
  at(now: number): Recorded | undefined {
    const month = monthOf(now);
    let reading = this.#reading;
    if (reading?.month.from !== month.from) {
      this.close();
      reading = this.#read(month);
      this.#reading = reading;
    }
    return reading.isRead() ? reading : undefined;
  }

  close(): void {
    this.#reading?.stop();
    this.#reading = undefined;
  }

  #tell(namespace: string | undefined): void {
    for (const listener of this.#listeners) listener(namespace);
  }

  #read(month: Month): Reading {
    const abort = new AbortController();
    const spending = new RecordedSpending(month);
    const common = { ...this.#deps, labelSelector: endedFrom(month.from) };
    const usage = new Informer({ ...common, type: USAGE_RECORDS, indexers: INDEXES, prune });
    const tokens = new Informer({ ...common, type: TOKEN_RECORDS, prune: pruneTokens });
    const stores = [usage.store, tokens.store];
    const revisions = new Map<string, number>();
    const revisionOf = (namespace: string): number => revisions.get(namespace) ?? 0;
    const unfollow = [
      // Before the sums change: who hears of a change counts anew.
      usage.store.onChange(({ before, after }) => {
        const { namespace = '' } = (after ?? before)?.metadata ?? {};
        revisions.set(namespace, revisionOf(namespace) + 1);
      }),
      this.#follow(usage.store, (record, sign) => spending.count(record, sign)),
      this.#follow(tokens.store, (record, sign) => spending.countTokens(record, sign)),
    ];
    for (const informer of [usage, tokens]) void informer.run(abort.signal);
    void Promise.all(stores.map(({ synced }) => synced)).then(() => this.#tell(undefined));
    const isRecorded = (uid: string, start: number): boolean =>
      usage.store.by('uid', uid).some(({ spec: { adjustment, intervals } }) => {
        if (adjustment !== undefined) return false;
        // A record without intervals is for all starts of its instance.
        return intervals?.some((interval) => interval.start === start) ?? true;
      });
    const stop = (): void => {
      for (const end of unfollow) end();
      abort.abort();
    };
    return { month, spending, isRecorded, revisionOf, isRead: () => stores.every(({ hasSynced }) => hasSynced), stop };
  }

  #follow<T extends KubeObject>(store: ReadStore<T>, count: (record: T, sign: 1 | -1) => void): () => void {
    return store.onChange(({ key, before, after }) => {
      if (before !== undefined) isRead(() => count(before, -1));
      if (after !== undefined && !isRead(() => count(after, 1)))
        this.#deps.log.error({ record: key }, 'A record cannot be read, and is left out of budgets');
      this.#tell((after ?? before)?.metadata.namespace ?? '');
    });
  }
}
