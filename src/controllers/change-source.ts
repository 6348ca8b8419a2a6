import type { ReadStore, StoreChange } from '../kube/watch/store.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Source } from '../runtime/source.ts';

/** Adds the keys that `keysOf` gives for each change of a cache. What is there at the start is no change. */
export function changeSource<T extends KubeObject>(
  store: ReadStore<T>,
  keysOf: (change: StoreChange<T>) => Iterable<string>,
): Source {
  return {
    synced: store.synced,
    start(add) {
      return store.onChange((change) => {
        for (const key of keysOf(change)) add(key);
      });
    },
  };
}

/** Whether an object was created or deleted, or its deletion began. */
export function cameOrWent<T extends KubeObject>({ before, after }: StoreChange<T>): boolean {
  return isThere(before) !== isThere(after) || before?.metadata.uid !== after?.metadata.uid;
}

function isThere(object: KubeObject | undefined): boolean {
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}
