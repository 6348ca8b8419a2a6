import type { KubeObject } from '../types.ts';

/** What happened to a key: before is undefined for a new object, after for one that is gone. */
export interface StoreChange<T> {
  key: string;
  before: T | undefined;
  after: T | undefined;
}

/**
 * A watch cache of one kind. Objects are frozen: copy one before changing it. Reads are synchronous and may lag behind
 * the API server; `resourceVersion` says by how much.
 */
export interface ReadStore<T extends KubeObject> {
  get(key: string): T | undefined;
  values(): IterableIterator<T>;
  readonly size: number;
  /** Objects for which the index function named `index` returned `value`. */
  by(index: string, value: string): readonly T[];
  /** The version of the last list, event or bookmark. */
  readonly resourceVersion: string;
  /** Resolves after the first complete list. */
  readonly synced: Promise<void>;
  readonly hasSynced: boolean;
  /** Calls the listener after every change; it must only enqueue. Returns the unsubscribe function. */
  onChange(listener: (change: StoreChange<T>) => void): () => void;
  /** An object that is not from the store, such as an answer of the API server, as the store would show it. */
  complete(object: T): T;
}

export type IndexFunctions<T> = Record<string, (object: T) => readonly string[]>;
