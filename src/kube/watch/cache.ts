import type { IndexFunctions, ReadStore, StoreChange } from './store.ts';
import { keyOf, type KubeObject } from '../types.ts';

/** A store together with the ways to change it, which only the reflector has. */
export interface Cache<T extends KubeObject> {
  readonly store: ReadStore<T>;
  /** The object as it is kept: pruned and frozen, or the one already kept when its version is the same. */
  prepare: (object: T) => T;
  upsert(object: T): void;
  remove(object: T): void;
  /** Makes the content equal to a complete list of prepared objects: what is not in it is removed. The first call marks the store synced. */
  replace(objects: readonly T[], resourceVersion: string): void;
  /** Moves the version on without a change (a bookmark). */
  advance(resourceVersion: string): void;
}

export interface CacheOptions<T> {
  indexers?: IndexFunctions<T> | undefined;
  /** Called before an object is kept; returns what to keep. It may change and return its argument. */
  prune?: ((object: T) => T) | undefined;
  /** Told about a listener that threw; the others are still called. */
  onListenerError: (error: unknown) => void;
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  Object.freeze(value);
  for (const key in value) freeze((value as Record<string, unknown>)[key]);
}

interface Index<T> {
  name: string;
  valuesOf: (object: T) => readonly string[];
  /** Index value to key to object; a value with no object left is removed. */
  buckets: Map<string, Map<string, T>>;
}

function addTo<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const bucket = index.buckets.get(value);
    if (bucket) bucket.set(key, object);
    else index.buckets.set(value, new Map([[key, object]]));
  }
}

function removeFrom<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.valuesOf(object)) {
    const bucket = index.buckets.get(value);
    if (!bucket?.delete(key)) continue;
    if (bucket.size === 0) index.buckets.delete(value);
  }
}

/** An empty, not yet synced store. After client-go's thread_safe_store.go; one thread here, so no locks. */
export function createCache<T extends KubeObject>(options: CacheOptions<T>): Cache<T> {
  const objects = new Map<string, T>();
  const indexes: Index<T>[] = Object.entries(options.indexers ?? {}).map(([name, valuesOf]) => ({
    name,
    valuesOf,
    buckets: new Map(),
  }));
  const byName = new Map(indexes.map((index) => [index.name, index]));
  const listeners = new Set<(change: StoreChange<T>) => void>();
  const synced = Promise.withResolvers<void>();
  let hasSynced = false;
  let version = '';

  function notify(change: StoreChange<T>): void {
    for (const listener of listeners) {
      try {
        listener(change);
      } catch (error) {
        options.onListenerError(error);
      }
    }
  }

  function prepare(object: T): T {
    const known = objects.get(keyOf(object));
    // Lists repeat what is known; the same version is the same object.
    if (known && known.metadata.resourceVersion === object.metadata.resourceVersion) return known;
    // Often half of an object, and nobody reads it.
    const { managedFields: _dropped, ...metadata } = object.metadata;
    const slim = { ...object, metadata };
    const kept = options.prune ? options.prune(slim) : slim;
    freeze(kept);
    return kept;
  }

  function put(after: T): StoreChange<T> | undefined {
    const key = keyOf(after);
    const before = objects.get(key);
    if (before === after) return undefined;
    for (const index of indexes) {
      if (before) removeFrom(index, key, before);
      addTo(index, key, after);
    }
    objects.set(key, after);
    return { key, before, after };
  }

  function drop(key: string): StoreChange<T> | undefined {
    const before = objects.get(key);
    if (!before) return undefined;
    for (const index of indexes) removeFrom(index, key, before);
    objects.delete(key);
    return { key, before, after: undefined };
  }

  const store: ReadStore<T> = {
    get: (key) => objects.get(key),
    values: () => objects.values(),
    get size() {
      return objects.size;
    },
    by(name, value) {
      const index = byName.get(name);
      if (!index) throw new RangeError(`The store has no index named "${name}".`);
      return [...(index.buckets.get(value)?.values() ?? [])];
    },
    get resourceVersion() {
      return version;
    },
    synced: synced.promise,
    get hasSynced() {
      return hasSynced;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  return {
    store,
    prepare,
    upsert(object) {
      version = object.metadata.resourceVersion ?? version;
      const change = put(prepare(object));
      if (change) notify(change);
    },
    remove(object) {
      version = object.metadata.resourceVersion ?? version;
      const change = drop(keyOf(object));
      if (change) notify(change);
    },
    replace(list, resourceVersion) {
      const listed = new Set(list.map((object) => keyOf(object)));
      const changes = [...objects.keys()].filter((key) => !listed.has(key)).map((key) => drop(key));
      for (const object of list) changes.push(put(object));
      version = resourceVersion;
      hasSynced = true;
      // Only now: a listener that reads the store must see the whole list.
      for (const change of changes) if (change) notify(change);
      synced.resolve();
    },
    advance(resourceVersion) {
      version = resourceVersion;
    },
  };
}
