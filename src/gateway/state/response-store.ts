import type { PrincipalRef } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { HistoryItem } from '../dialects/index.ts';

/** One answer of the responses dialect, for clients to read again and continue. */
export interface StoredResponse {
  /** The response that it continues. */
  previous?: string;
  /** Its own input items, then its output items. */
  items: readonly HistoryItem[];
  /** How many of the items are input. Answers of earlier releases do not have it. */
  inputs?: number;
  /** The answer as the client got it. */
  response: unknown;
}

/** Answers by API key and id. A key never sees the answers of another. The keys of a tenant share the tenant's bounds. */
export interface ResponseStore {
  get(owner: PrincipalRef, id: string): Promise<StoredResponse | undefined>;
  /** @param most answers that the tenant may have */
  put(owner: PrincipalRef, id: string, stored: StoredResponse, most: number): Promise<void>;
  /** @returns whether the answer was stored */
  delete(owner: PrincipalRef, id: string): Promise<boolean>;
  /** Items of the key's stored answers by their id. Unknown ids are left out. */
  findItems(owner: PrincipalRef, ids: readonly string[]): Promise<ReadonlyMap<string, readonly HistoryItem[]>>;
}

export interface StoreBounds {
  ttlMs: number;
  /** UTF-16 code units of JSON, each of which takes up to two bytes of heap. */
  maxSizePerTenant: number;
  maxSize: number;
}

export const DEFAULT_STORE_BOUNDS: StoreBounds = {
  ttlMs: 24 * 3600 * 1000,
  maxSizePerTenant: 32 * 1024 * 1024,
  maxSize: 128 * 1024 * 1024,
};

interface Entry {
  json: string;
  expiresAt: number;
  /** Keys of its items in {@link TenantAnswers.items}. */
  items: readonly string[];
}

/** The answers of one tenant. */
interface TenantAnswers {
  /** By key and id, least recently used first. */
  entries: Map<string, Entry>;
  /** The answer that has an item, by API key and id of the item. */
  items: Map<string, string>;
  size: number;
}

/** The items with a wanted id, in order. */
export function itemsById(items: readonly HistoryItem[], wanted: ReadonlySet<string>): Map<string, HistoryItem[]> {
  const found = new Map<string, HistoryItem[]>();
  for (const item of items) {
    if (item.id === undefined || !wanted.has(item.id)) continue;
    const same = found.get(item.id);
    if (same === undefined) found.set(item.id, [item]);
    else same.push(item);
  }
  return found;
}

/**
 * Keeps answers in memory. When a bound of a tenant is reached, its least recently used answers go. When the bound of
 * all is reached, those of the tenant that holds the most go: who holds little loses nothing to who holds much. An
 * answer beyond the tenant's bound is not stored.
 */
export class MemoryStore implements ResponseStore {
  readonly #clock: Clock;
  readonly #bounds: StoreBounds;
  readonly #tenants = new Map<string, TenantAnswers>();
  #size = 0;

  constructor(clock: Clock, bounds: StoreBounds = DEFAULT_STORE_BOUNDS) {
    this.#clock = clock;
    this.#bounds = bounds;
  }

  async get(owner: PrincipalRef, id: string): Promise<StoredResponse | undefined> {
    const answers = this.#tenants.get(owner.namespace);
    return answers === undefined ? undefined : this.#read(owner.namespace, answers, nameOf(owner, id));
  }

  async put(owner: PrincipalRef, id: string, stored: StoredResponse, most: number): Promise<void> {
    const { namespace } = owner;
    const { ttlMs, maxSizePerTenant, maxSize } = this.#bounds;
    const json = JSON.stringify(stored);
    const name = nameOf(owner, id);
    const answers = this.#tenants.get(namespace) ?? { entries: new Map(), items: new Map(), size: 0 };
    this.#drop(namespace, answers, name);
    if (json.length > maxSizePerTenant || most < 1) return;
    const ids = new Set(stored.items.flatMap((item) => item.id ?? []));
    const items = [...ids].map((item) => nameOf(owner, item));
    answers.entries.set(name, { json, expiresAt: this.#clock.monotonic() + ttlMs, items });
    for (const item of items) answers.items.set(item, name);
    answers.size += json.length;
    this.#size += json.length;
    this.#tenants.set(namespace, answers);
    this.#dropOldest(namespace, answers, () => answers.size <= maxSizePerTenant && answers.entries.size <= most);
    while (this.#size > maxSize) {
      const [largest, second] = this.#largest();
      if (largest === undefined) return;
      const bound = second?.[1].size ?? 0;
      this.#dropOldest(...largest, () => this.#size <= maxSize || largest[1].size < bound);
    }
  }

  async delete(owner: PrincipalRef, id: string): Promise<boolean> {
    const answers = this.#tenants.get(owner.namespace);
    return answers !== undefined && this.#drop(owner.namespace, answers, nameOf(owner, id));
  }

  async findItems(owner: PrincipalRef, ids: readonly string[]): Promise<Map<string, HistoryItem[]>> {
    const found = new Map<string, HistoryItem[]>();
    const answers = this.#tenants.get(owner.namespace);
    if (answers === undefined) return found;
    const wanted = new Set(ids);
    const names = new Set(ids.flatMap((id) => answers.items.get(nameOf(owner, id)) ?? []));
    for (const name of names) {
      const stored = this.#read(owner.namespace, answers, name);
      for (const [id, items] of itemsById(stored?.items ?? [], wanted))
        if (answers.items.get(nameOf(owner, id)) === name) found.set(id, items);
    }
    return found;
  }

  #read(tenant: string, answers: TenantAnswers, name: string): StoredResponse | undefined {
    const entry = answers.entries.get(name);
    if (entry === undefined) return undefined;
    if (entry.expiresAt <= this.#clock.monotonic()) {
      this.#drop(tenant, answers, name);
      return undefined;
    }
    answers.entries.delete(name);
    answers.entries.set(name, entry);
    return parse(entry);
  }

  /** The two tenants that hold the most. */
  #largest(): [string, TenantAnswers][] {
    let first: [string, TenantAnswers] | undefined;
    let second: [string, TenantAnswers] | undefined;
    for (const tenant of this.#tenants) {
      if (first === undefined || tenant[1].size > first[1].size) [first, second] = [tenant, first];
      else if (second === undefined || tenant[1].size > second[1].size) second = tenant;
    }
    return [first, second].filter((tenant) => tenant !== undefined);
  }

  #drop(tenant: string, answers: TenantAnswers, name: string): boolean {
    const entry = answers.entries.get(name);
    if (entry === undefined) return false;
    answers.entries.delete(name);
    for (const item of entry.items) if (answers.items.get(item) === name) answers.items.delete(item);
    answers.size -= entry.json.length;
    this.#size -= entry.json.length;
    if (answers.entries.size === 0) this.#tenants.delete(tenant);
    return true;
  }

  /** Drops all in one walk. Finding the first key of a map walks over every entry that was deleted before it. */
  #dropOldest(tenant: string, answers: TenantAnswers, isEnough: () => boolean): void {
    for (const name of answers.entries.keys()) {
      if (isEnough()) return;
      this.#drop(tenant, answers, name);
    }
  }
}

/** Ids of API keys have no slash, so no two pairs have one name. */
export function nameOf({ keyId }: Pick<PrincipalRef, 'keyId'>, id: string): string {
  return `${keyId}/${id}`;
}

function parse({ json }: Entry): StoredResponse {
  return JSON.parse(json) as StoredResponse;
}
