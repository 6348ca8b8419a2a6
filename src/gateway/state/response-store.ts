import type { HistoryItem } from '../dialects/index.ts';

/** One answer of the responses dialect, kept so that it can be read again and continued. */
export interface StoredResponse {
  /** The response it continued. */
  previous?: string;
  /** Its own input items, then its output items. */
  items: readonly HistoryItem[];
  /** The answer as the client got it. */
  response: unknown;
}

/** Answers by API key and id. A key never sees what another stored. */
export interface ResponseStore {
  get(keyId: string, id: string): Promise<StoredResponse | undefined>;
  put(keyId: string, id: string, stored: StoredResponse): Promise<void>;
  /** @returns whether it was there */
  delete(keyId: string, id: string): Promise<boolean>;
  /** Items of the key's stored answers by their id; ids that are not there are left out. */
  findItems(keyId: string, ids: readonly string[]): Promise<ReadonlyMap<string, readonly HistoryItem[]>>;
}

export interface StoreBounds {
  ttlMs: number;
  /** UTF-16 code units of JSON, about half the bytes of heap. */
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

/** Least recently used first, in both maps. */
interface Shelf {
  entries: Map<string, Entry>;
  size: number;
}

/** The items with one of the `wanted` ids, in order. */
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
 * Keeps answers in memory. What is oldest in use goes first when a bound is reached, first within the key's own
 * bound, then over all keys; what is larger than the key's bound is not kept.
 *
 * @param now milliseconds, monotonic
 */
export function createMemoryStore(now: () => number, bounds: StoreBounds = DEFAULT_STORE_BOUNDS): ResponseStore {
  const shelves = new Map<string, Shelf>();
  let size = 0;

  function drop(keyId: string, shelf: Shelf, id: string): boolean {
    const entry = shelf.entries.get(id);
    if (entry === undefined) return false;
    shelf.entries.delete(id);
    shelf.size -= entry.json.length;
    size -= entry.json.length;
    if (shelf.entries.size === 0) shelves.delete(keyId);
    return true;
  }

  /** A map finds its first key by walking over all that were deleted before it, so one walk drops them all. */
  function dropOldest(keyId: string, shelf: Shelf, isEnough: () => boolean): void {
    for (const id of shelf.entries.keys()) {
      if (isEnough()) return;
      drop(keyId, shelf, id);
    }
  }

  function read(keyId: string, id: string): StoredResponse | undefined {
    const shelf = shelves.get(keyId);
    const entry = shelf?.entries.get(id);
    if (shelf === undefined || entry === undefined) return undefined;
    if (entry.expiresAt <= now()) {
      drop(keyId, shelf, id);
      return undefined;
    }
    shelf.entries.delete(id);
    shelf.entries.set(id, entry);
    return JSON.parse(entry.json) as StoredResponse;
  }

  function write(keyId: string, id: string, stored: StoredResponse): void {
    const json = JSON.stringify(stored);
    const shelf = shelves.get(keyId) ?? { entries: new Map<string, Entry>(), size: 0 };
    drop(keyId, shelf, id);
    if (json.length > bounds.maxSizePerKey) return;
    shelf.entries.set(id, { json, expiresAt: now() + bounds.ttlMs });
    shelf.size += json.length;
    size += json.length;
    shelves.delete(keyId);
    shelves.set(keyId, shelf);
    dropOldest(keyId, shelf, () => shelf.size <= bounds.maxSizePerKey);
    for (const oldest of shelves) {
      if (size <= bounds.maxSize) return;
      dropOldest(...oldest, () => size <= bounds.maxSize);
    }
  }

  function find(keyId: string, ids: readonly string[]): Map<string, HistoryItem[]> {
    const wanted = new Set(ids);
    const found = new Map<string, HistoryItem[]>();
    for (const id of shelves.get(keyId)?.entries.keys() ?? []) {
      const own = itemsById(parse(shelves.get(keyId)?.entries.get(id))?.items ?? [], wanted);
      for (const [itemId, items] of own) found.set(itemId, items);
    }
    return found;
  }

  function parse(entry: Entry | undefined): StoredResponse | undefined {
    return entry === undefined || entry.expiresAt <= now() ? undefined : (JSON.parse(entry.json) as StoredResponse);
  }

  return {
    get: (keyId, id) => Promise.resolve(read(keyId, id)),
    put: async (keyId, id, stored) => write(keyId, id, stored),
    delete: async (keyId, id) => {
      const shelf = shelves.get(keyId);
      return shelf !== undefined && drop(keyId, shelf, id);
    },
    findItems: async (keyId, ids) => (ids.length === 0 ? new Map() : find(keyId, ids)),
  };
}
