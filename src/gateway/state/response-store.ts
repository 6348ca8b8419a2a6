import type { PrincipalRef } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { HistoryItem } from '../dialects/index.ts';
import { writeItems } from './item-lines.ts';

/** What is known of an answer beside its texts. */
interface Head {
  /** The response that it continues. */
  previous?: string;
  /** The name of the model that gave it. */
  model: string;
  /** How many of the items are input. */
  inputs: number;
}

/** One answer of the responses dialect, for clients to read again and continue. */
export interface NewResponse extends Head {
  /** Its own input items, then its output items. */
  items: readonly HistoryItem[];
  /** The answer as the client got it. */
  response: unknown;
}

/** The answer as the client got it, as JSON, or the lines of its items: see `writeItems`. */
export type Part = 'response' | 'items';

/** One part of a stored answer. It is text: parsing all of a long one would hold up every other call. */
export interface StoredPart extends Head {
  text: string;
}

/** Answers by API key and id. A key never sees the answers of another. The keys of a tenant share the tenant's bounds. */
export interface ResponseStore {
  get(owner: PrincipalRef, id: string, part: Part): Promise<StoredPart | undefined>;
  /** @param most answers that the tenant may have */
  put(owner: PrincipalRef, id: string, stored: NewResponse, most: number): Promise<void>;
  /** @returns whether the answer was stored */
  delete(owner: PrincipalRef, id: string): Promise<boolean>;
  /** The ids of the key's stored answers that have these items, by the id of the item. Unknown items are left out. */
  findAnswers(owner: PrincipalRef, items: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export interface StoreBounds {
  ttlMs: number;
  /** UTF-16 code units of the texts and names, each of which takes up to two bytes of heap. */
  maxSizePerTenant: number;
  maxSize: number;
}

export const DEFAULT_STORE_BOUNDS: StoreBounds = {
  ttlMs: 24 * 3600 * 1000,
  maxSizePerTenant: 32 * 1024 * 1024,
  maxSize: 128 * 1024 * 1024,
};

interface Entry extends Record<Part, string> {
  head: Head;
  size: number;
  expiresAt: number;
  /** Keys of its items in {@link TenantAnswers.items}. */
  names: readonly string[];
}

/** The answers of one tenant. */
interface TenantAnswers {
  /** By key and id, least recently used first. */
  entries: Map<string, Entry>;
  /** The answer that has an item, by API key and id of the item. */
  items: Map<string, string>;
  size: number;
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

  async get(owner: PrincipalRef, id: string, part: Part): Promise<StoredPart | undefined> {
    const answers = this.#tenants.get(owner.namespace);
    const entry = answers && this.#read(owner.namespace, answers, nameOf(owner, id));
    return entry && { ...entry.head, text: entry[part] };
  }

  async put(owner: PrincipalRef, id: string, stored: NewResponse, most: number): Promise<void> {
    const { namespace } = owner;
    const { ttlMs, maxSizePerTenant, maxSize } = this.#bounds;
    const { items: all, response: answer, ...head } = stored;
    const [text, response] = [writeItems(all), JSON.stringify(answer)];
    const name = nameOf(owner, id);
    const names = namesOfItems(owner, all);
    const size = JSON.stringify(head).length + text.length + response.length + sizeOfNames(name, names);
    const answers = this.#tenants.get(namespace) ?? { entries: new Map(), items: new Map(), size: 0 };
    this.#drop(namespace, answers, name);
    if (size > maxSizePerTenant || most < 1) return;
    const expiresAt = this.#clock.monotonic() + ttlMs;
    answers.entries.set(name, { head, response, items: text, size, expiresAt, names });
    for (const item of names) answers.items.set(item, name);
    answers.size += size;
    this.#size += size;
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

  async findAnswers({ namespace, keyId }: PrincipalRef, items: readonly string[]): Promise<Map<string, string>> {
    const owners = this.#tenants.get(namespace)?.items;
    return new Map(
      items.flatMap((item) => {
        const name = owners?.get(nameOf({ keyId }, item));
        return name === undefined ? [] : [[item, idIn(name)] as const];
      }),
    );
  }

  #read(tenant: string, answers: TenantAnswers, name: string): Entry | undefined {
    const entry = answers.entries.get(name);
    if (entry === undefined) return undefined;
    if (entry.expiresAt <= this.#clock.monotonic()) {
      this.#drop(tenant, answers, name);
      return undefined;
    }
    answers.entries.delete(name);
    answers.entries.set(name, entry);
    return entry;
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
    for (const item of entry.names) if (answers.items.get(item) === name) answers.items.delete(item);
    answers.size -= entry.size;
    this.#size -= entry.size;
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

/** The names of the items that have an id, each once. */
export function namesOfItems(owner: Pick<PrincipalRef, 'keyId'>, items: readonly HistoryItem[]): string[] {
  return [...new Set(items.flatMap((item) => item.id ?? []))].map((item) => nameOf(owner, item));
}

/** What an answer takes in maps and objects, and what each name of an item does: some 350 and 100 bytes. */
const ENTRY_SIZE = 180;
const NAME_SIZE = 50;

/** What an answer takes beside its texts. Engines choose the ids, and how many items there are. */
export function sizeOfNames(name: string, items: readonly string[]): number {
  return items.reduce((sum, item) => sum + item.length + NAME_SIZE, name.length + ENTRY_SIZE);
}

/** The id of an answer or item in its name. */
export function idIn(name: string): string {
  return name.slice(name.indexOf('/') + 1);
}
