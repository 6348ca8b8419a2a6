import type { ReadStore, StoreChange } from '../kube/watch/store.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Priority } from './workqueue.ts';

export type AddKey = (key: string, priority?: Priority) => void;

/** Tells a controller which keys to look at. */
export interface Source {
  /** Resolves when the source knows every object that exists; no worker starts before. */
  readonly synced: Promise<void>;
  /** Adds the keys of every object that exists, then those of every change. Returns the function that stops it. */
  start(add: AddKey): () => void;
}

export interface StoreSourceOptions<T> {
  /** The order of the objects that exist at the start. */
  order?: (a: T, b: T) => number;
  /** The priority of an object that is new or changed; one that is gone is always `normal`. */
  priorityOf?: (after: T) => Priority;
}

/**
 * The changes of a watch cache. `keysOf` gives the keys to look at for an object: its own, its owner's, or those of all
 * objects that refer to it. Both sides of a change count: a key that lost the object is looked at too.
 */
export function storeSource<T extends KubeObject>(
  store: ReadStore<T>,
  keysOf: (object: T) => Iterable<string>,
  { order, priorityOf }: StoreSourceOptions<T> = {},
): Source {
  function addAll({ before, after }: Omit<StoreChange<T>, 'key'>, add: AddKey, priority?: Priority): void {
    const keys = new Set(after ? keysOf(after) : []);
    if (before) for (const key of keysOf(before)) keys.add(key);
    for (const key of keys) add(key, priority);
  }
  return {
    synced: store.synced,
    start(add) {
      // What exists at the start yields to what happens now (controller-runtime's designs/priorityqueue.md).
      const existing = order === undefined ? store.values() : [...store.values()].toSorted(order);
      for (const object of existing) addAll({ before: undefined, after: object }, add, 'low');
      return store.onChange((change) => addAll(change, add, change.after && priorityOf?.(change.after)));
    },
  };
}
