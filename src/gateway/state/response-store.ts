import type { Clock } from '../../lib/clock.ts';
import type { HistoryItem } from '../dialects/index.ts';

/** One answer of the responses dialect, for clients to read again and continue. */
export interface StoredResponse {
  /** The response that it continues. */
  previous?: string;
  /** Its own input items, then its output items. */
  items: readonly HistoryItem[];
  /** The answer as the client got it. */
  response: unknown;
}

/** Answers by API key and id. A key never sees the answers of another. */
export interface ResponseStore {
  get(keyId: string, id: string): Promise<StoredResponse | undefined>;
  put(keyId: string, id: string, stored: StoredResponse): Promise<void>;
  /** @returns whether the answer was stored */
  delete(keyId: string, id: string): Promise<boolean>;
  /** Items of the key's stored answers by their id. Unknown ids are left out. */
  findItems(keyId: string, ids: readonly string[]): Promise<ReadonlyMap<string, readonly HistoryItem[]>>;
}

export interface StoreBounds {
  ttlMs: number;
  /** UTF-16 code units of JSON, each of which takes up to two bytes of heap. */
  maxSizePerKey: number;
  maxSize: number;
}

export const DEFAULT_STORE_BOUNDS: StoreBounds = {
  ttlMs: 24 * 3600 * 1000,
  maxSizePerKey: 16 * 1024 * 1024,
  maxSize: 128 * 1024 * 1024,
};

interface Entry {
  json: string;
  expiresAt: number;
}

/** The answers of one API key, least recently used first. */
interface KeyAnswers {
  entries: Map<string, Entry>;
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
 * Keeps answers in memory. When a bound is reached, the least recently used answers go, first within the key's own
 * bound, then over all keys. An answer beyond the key's bound is not stored.
 */
export class MemoryStore implements ResponseStore {
  readonly #clock: Clock;
  readonly #bounds: StoreBounds;
  /** Least recently written first. */
  readonly #keys = new Map<string, KeyAnswers>();
  #size = 0;

  constructor(clock: Clock, bounds: StoreBounds = DEFAULT_STORE_BOUNDS) {
    this.#clock = clock;
    this.#bounds = bounds;
  }

  async get(keyId: string, id: string): Promise<StoredResponse | undefined> {
    const answers = this.#keys.get(keyId);
    const entry = answers?.entries.get(id);
    if (answers === undefined || entry === undefined) return undefined;
    if (this.#isExpired(entry)) {
      this.#drop(keyId, answers, id);
      return undefined;
    }
    answers.entries.delete(id);
    answers.entries.set(id, entry);
    return parse(entry);
  }

  async put(keyId: string, id: string, stored: StoredResponse): Promise<void> {
    const json = JSON.stringify(stored);
    const { ttlMs, maxSizePerKey, maxSize } = this.#bounds;
    const answers = this.#keys.get(keyId) ?? { entries: new Map<string, Entry>(), size: 0 };
    this.#drop(keyId, answers, id);
    if (json.length > maxSizePerKey) return;
    answers.entries.set(id, { json, expiresAt: this.#clock.monotonic() + ttlMs });
    answers.size += json.length;
    this.#size += json.length;
    this.#keys.delete(keyId);
    this.#keys.set(keyId, answers);
    this.#dropOldest(keyId, answers, () => answers.size <= maxSizePerKey);
    for (const oldest of this.#keys) {
      if (this.#size <= maxSize) return;
      this.#dropOldest(...oldest, () => this.#size <= maxSize);
    }
  }

  async delete(keyId: string, id: string): Promise<boolean> {
    const answers = this.#keys.get(keyId);
    return answers !== undefined && this.#drop(keyId, answers, id);
  }

  async findItems(keyId: string, ids: readonly string[]): Promise<Map<string, HistoryItem[]>> {
    const found = new Map<string, HistoryItem[]>();
    if (ids.length === 0) return found;
    const wanted = new Set(ids);
    for (const entry of this.#keys.get(keyId)?.entries.values() ?? []) {
      if (this.#isExpired(entry)) continue;
      for (const [id, items] of itemsById(parse(entry).items, wanted)) found.set(id, items);
    }
    return found;
  }

  #isExpired({ expiresAt }: Entry): boolean {
    return expiresAt <= this.#clock.monotonic();
  }

  #drop(keyId: string, answers: KeyAnswers, id: string): boolean {
    const entry = answers.entries.get(id);
    if (entry === undefined) return false;
    answers.entries.delete(id);
    answers.size -= entry.json.length;
    this.#size -= entry.json.length;
    if (answers.entries.size === 0) this.#keys.delete(keyId);
    return true;
  }

  /** Drops all in one walk. Finding the first key of a map walks over every entry that was deleted before it. */
  #dropOldest(keyId: string, answers: KeyAnswers, isEnough: () => boolean): void {
    for (const id of answers.entries.keys()) {
      if (isEnough()) return;
      this.#drop(keyId, answers, id);
    }
  }
}

function parse({ json }: Entry): StoredResponse {
  return JSON.parse(json) as StoredResponse;
}
