import type { ReadStore, StoreChange } from '../kube/watch/store.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Priority } from './queue/workqueue.ts';

export type AddKey = (key: string, priority?: Priority) => void;

/** Something that says which keys a controller has to look at. */
export interface Source {
  /** Resolves when everything that exists is known; no worker starts before. */
  readonly synced: Promise<void>;
  /** Adds the keys of everything that exists, and from then on of every change. Returns the function that stops it. */
  start(add: AddKey): () => void;
}

export interface StoreSourceOptions<T> {
  /** Of the objects that are there at the start. */
  order?: (a: T, b: T) => number;
  /** Of an object that came or changed; one that went is always `normal`. */
  priorityOf?: (after: T) => Priority;
}

/**
 * The changes of a watch cache. `keysOf` gives the keys to look at for one change: the object's own, its owner's, or
 * those of all objects that refer to it. Both sides of the change count, so that a key that lost the object hears of it.
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
      // What is there at the start yields to what happens now (controller-runtime's designs/priorityqueue.md).
      const there = order === undefined ? store.values() : [...store.values()].toSorted(order);
      for (const object of there) addAll({ before: undefined, after: object }, add, 'low');
      return store.onChange((change) => addAll(change, add, change.after && priorityOf?.(change.after)));
    },
  };
}
