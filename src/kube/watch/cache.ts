import type { IndexFunctions, ReadStore, StoreChange } from './store.ts';
import { keyOf, type KubeObject } from '../types.ts';

export interface CacheOptions<T> {
  indexers?: IndexFunctions<T> | undefined;
  /** Returns what the cache keeps of an object. May change and return its argument. */
  prune?: ((object: T) => T) | undefined;
  /**
   * Returns what readers see of an object, where other objects say a part of it. Gets objects that it returned before,
   * too. Its results have the version of their argument, and are the same ones while nothing changes.
   */
  complete?: ((object: T) => T) | undefined;
  /** Gets the error of a listener that threw; the cache still calls the others. */
  onListenerError: (error: unknown) => void;
}

/** kubectl keeps a copy of the object there. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** An object without what may be half of it and nothing in Berth reads. */
function slim<T extends KubeObject>(object: T): T {
  const { managedFields: _fields, ...metadata } = object.metadata;
  if (metadata.annotations?.[LAST_APPLIED] === undefined) return { ...object, metadata };
  const { [LAST_APPLIED]: _copy, ...annotations } = metadata.annotations;
  return { ...object, metadata: { ...metadata, annotations } };
}

/** What is frozen has been here: it is frozen in all its parts. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) freeze(inner);
}

interface Index<T> {
  valuesOf: (object: T) => readonly string[];
  /** Index value to key to object. A value without objects has no entry. */
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

/** A store with the ways to change it, for the reflector. After client-go's thread_safe_store.go, without locks. */
export class Cache<T extends KubeObject> implements ReadStore<T> {
  readonly #options: CacheOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #indexes: ReadonlyMap<string, Index<T>>;
  readonly #listeners = new Set<(change: StoreChange<T>) => void>();
  readonly #synced = Promise.withResolvers<void>();
  #hasSynced = false;
  #resourceVersion = '';

  constructor(options: CacheOptions<T>) {
    this.#options = options;
    const indexers = Object.entries(options.indexers ?? {});
    this.#indexes = new Map(indexers.map(([name, valuesOf]) => [name, { valuesOf, buckets: new Map() }]));
  }

  /** What readers get. */
  get store(): ReadStore<T> {
    return this;
  }

  get size(): number {
    return this.#objects.size;
  }

  get resourceVersion(): string {
    return this.#resourceVersion;
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  by(name: string, value: string): readonly T[] {
    const index = this.#indexes.get(name);
    if (!index) throw new RangeError(`The store has no index named "${name}".`);
    return [...(index.buckets.get(value)?.values() ?? [])];
  }

  onChange(listener: (change: StoreChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  complete(object: T): T {
    return this.#options.complete?.(object) ?? object;
  }

  /** What completes the object of this key has changed, which may change the object for its readers. */
  refresh(key: string): void {
    const known = this.#objects.get(key);
    if (known) this.#notify(this.#put(known));
  }

  /** The object as the cache keeps it: pruned and frozen, or the one it has when the version is the same. */
  prepare(object: T): T {
    const known = this.#objects.get(keyOf(object));
    if (known && known.metadata.resourceVersion === object.metadata.resourceVersion) return known;
    const whole = slim(object);
    const kept = this.#options.prune ? this.#options.prune(whole) : whole;
    freeze(kept);
    return kept;
  }

  upsert(object: T): void {
    this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion;
    this.#notify(this.#put(this.prepare(object)));
  }

  remove(object: T): void {
    this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion;
    this.#notify(this.#drop(keyOf(object)));
  }

  /** Makes the content equal to a complete list of prepared objects. The first call marks the store synced. */
  replace(objects: readonly T[], resourceVersion: string): void {
    const listed = new Set(objects.map((object) => keyOf(object)));
    const changes = [...this.#objects.keys()].filter((key) => !listed.has(key)).map((key) => this.#drop(key));
    for (const object of objects) changes.push(this.#put(object));
    this.#resourceVersion = resourceVersion;
    this.#hasSynced = true;
    // Only now: a listener that reads the store must see the whole list.
    for (const change of changes) this.#notify(change);
    this.#synced.resolve();
  }

  /** Moves the version on without a change (a bookmark). */
  advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
  }

  #put(object: T): StoreChange<T> | undefined {
    const after = this.complete(object);
    const key = keyOf(after);
    const before = this.#objects.get(key);
    if (before === after) return undefined;
    if (after !== object) freeze(after);
    for (const index of this.#indexes.values()) {
      if (before) removeFrom(index, key, before);
      addTo(index, key, after);
    }
    this.#objects.set(key, after);
    return { key, before, after };
  }

  #drop(key: string): StoreChange<T> | undefined {
    const before = this.#objects.get(key);
    if (!before) return undefined;
    for (const index of this.#indexes.values()) removeFrom(index, key, before);
    this.#objects.delete(key);
    return { key, before, after: undefined };
  }

  #notify(change: StoreChange<T> | undefined): void {
    if (!change) return;
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.onListenerError(error);
      }
    }
  }
}
