import { keyOf, type KubeObject } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { InstanceHistory } from '../resources/instance-history.ts';
import { type RankedEntry, rankEntries, typeOf, type Wants } from './events.ts';

/** More changes than this at once, and the list is sorted again: each by itself moves what stands behind it. */
const MANY = 64;

/** The entries of one reason, by their positions. */
interface Bucket {
  type: string;
  entries: RankedEntry[];
}

interface Tenant {
  /** By the reason of the entries. */
  buckets: Map<string, Bucket>;
  /** By the key of the history, in the order of its entries. */
  histories: Map<string, RankedEntry[]>;
  /** Keys of histories that changed since. */
  changed: Set<string>;
}

function compare(a: RankedEntry, b: RankedEntry): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return a.position < b.position ? -1 : Number(a.position > b.position);
}

/** Where the first entry stands for which `isBehind` holds; the entries are sorted by it. */
function firstIndex(entries: readonly RankedEntry[], isBehind: (one: RankedEntry) => boolean): number {
  let [from, to] = [0, entries.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const one = entries[middle];
    if (one !== undefined && isBehind(one)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function change(bucket: Bucket, removed: readonly RankedEntry[], added: readonly RankedEntry[]): void {
  if (removed.length + added.length > MANY) {
    const gone = new Set(removed);
    bucket.entries = [...bucket.entries.filter((one) => !gone.has(one)), ...added].toSorted(compare);
    return;
  }
  for (const one of removed)
    bucket.entries.splice(
      firstIndex(bucket.entries, (other) => compare(other, one) >= 0),
      1,
    );
  for (const one of added)
    bucket.entries.splice(
      firstIndex(bucket.entries, (other) => compare(other, one) > 0),
      0,
      one,
    );
}

/** The entries of histories in the order in which they were recorded, so that a webhook looks at no more than it is told. */
export class EventIndex {
  readonly #store: ReadStore<InstanceHistory>;
  /** By namespace: those that were asked for. */
  readonly #tenants = new Map<string, Tenant>();
  readonly #unwatch: () => void;

  constructor(store: ReadStore<InstanceHistory>) {
    this.#store = store;
    this.#unwatch = store.onChange(({ key, before, after }) => {
      const { namespace = '' } = (after ?? before ?? NOWHERE).metadata;
      this.#tenants.get(namespace)?.changed.add(key);
    });
  }

  close(): void {
    this.#unwatch();
  }

  /** The wanted entries of a tenant behind a position, oldest first. */
  *after(namespace: string, position: string, wants: Wants): Generator<RankedEntry, void> {
    const [since = ''] = position.split(' ');
    const isBehind = (one: RankedEntry): boolean => one.at > since || (one.at === since && one.position > position);
    const heads = [...this.#tenant(namespace).buckets.values()]
      .filter(({ type }) => wants(type))
      .map(({ entries }) => ({ entries, next: firstIndex(entries, isBehind) }));
    for (;;) {
      let oldest: RankedEntry | undefined;
      let from: (typeof heads)[number] | undefined;
      for (const head of heads) {
        const one = head.entries[head.next];
        if (one === undefined || (oldest !== undefined && compare(oldest, one) < 0)) continue;
        [oldest, from] = [one, head];
      }
      if (oldest === undefined || from === undefined) return;
      from.next += 1;
      yield oldest;
    }
  }

  #tenant(namespace: string): Tenant {
    const known = this.#tenants.get(namespace);
    const tenant = known ?? { buckets: new Map(), histories: new Map(), changed: new Set() };
    if (known === undefined) {
      this.#tenants.set(namespace, tenant);
      for (const history of this.#store.by('namespace', namespace)) tenant.changed.add(keyOf(history));
    }
    this.#catchUp(tenant);
    if (tenant.histories.size === 0) this.#tenants.delete(namespace);
    return tenant;
  }

  #catchUp({ buckets, histories, changed }: Tenant): void {
    const changes = new Map<string, { removed: RankedEntry[]; added: RankedEntry[] }>();
    const of = ({ reason }: RankedEntry) => {
      const found = changes.get(reason) ?? { removed: [], added: [] };
      changes.set(reason, found);
      return found;
    };
    for (const key of changed) {
      const history = this.#store.get(key);
      const before = new Map(histories.get(key)?.map((one) => [one.number, one]));
      const after = history === undefined ? [] : rankEntries(history);
      for (const [index, one] of after.entries()) {
        const same = before.get(one.number)?.renewed(one);
        if (same === undefined) of(one).added.push(one);
        else {
          after[index] = same;
          before.delete(one.number);
        }
      }
      for (const old of before.values()) of(old).removed.push(old);
      if (after.length > 0) histories.set(key, after);
      else histories.delete(key);
    }
    changed.clear();
    for (const [reason, { removed, added }] of changes) {
      const bucket = buckets.get(reason) ?? { type: typeOf(reason), entries: [] };
      change(bucket, removed, added);
      if (bucket.entries.length > 0) buckets.set(reason, bucket);
      else buckets.delete(reason);
    }
  }
}

const NOWHERE: KubeObject = { metadata: { name: '' } };
