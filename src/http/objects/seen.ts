import type { KubeObject } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';

/** Milliseconds: a watch is mostly a few behind. */
const MOST_MS = 1_000;

/**
 * Waits until the cache of this replica has what was just written, so that the client's next request finds it. After a
 * second the answer is given all the same.
 * @param isThere whether the object that the cache has of this key is that of the write, or a later one
 */
export async function seen<T extends KubeObject>(
  store: ReadStore<T>,
  key: string,
  isThere: (cached: T | undefined) => boolean,
  clock: Pick<Clock, 'setTimeout'>,
): Promise<void> {
  if (isThere(store.get(key))) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.setTimeout(resolve, MOST_MS);
  const stop = store.onChange((change) => {
    if (change.key === key && isThere(change.after)) resolve();
  });
  await promise;
  cancel();
  stop();
}
