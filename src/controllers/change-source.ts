import type { ReadStore, StoreChange } from '../kube/watch/store.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Source } from '../runtime/source.ts';

/** Keys to look at for those changes of a cache that matter to them; what is there at the start is not a change. */
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

/** Whether an object came, went or began to go. */
export function cameOrWent<T extends KubeObject>({ before, after }: StoreChange<T>): boolean {
  return isThere(before) !== isThere(after) || before?.metadata.uid !== after?.metadata.uid;
}

function isThere(object: KubeObject | undefined): boolean {
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}
