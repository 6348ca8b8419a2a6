import type { ReadStore, StoreChange } from '../../src/kube/watch/store.ts';
import { keyOf, type KubeObject } from '../../src/kube/types.ts';

/** A watch cache that the test fills by hand. */
export class FakeStore<T extends KubeObject> implements ReadStore<T> {
  readonly #objects = new Map<string, T>();
  readonly #listeners = new Set<(change: StoreChange<T>) => void>();
  readonly resourceVersion = '1';
  readonly synced = Promise.resolve();
  readonly hasSynced = true;

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  get size(): number {
    return this.#objects.size;
  }

  by(): readonly T[] {
    return [];
  }

  onChange(listener: (change: StoreChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  complete(object: T): T {
    return object;
  }

  put(object: T): void {
    const key = keyOf(object);
    const before = this.#objects.get(key);
    this.#objects.set(key, object);
    this.#tell({ key, before, after: object });
  }

  remove(key: string): void {
    const before = this.#objects.get(key);
    this.#objects.delete(key);
    this.#tell({ key, before, after: undefined });
  }

  #tell(change: StoreChange<T>): void {
    for (const listener of this.#listeners) listener(change);
  }
}
