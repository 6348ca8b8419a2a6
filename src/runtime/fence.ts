import type { Logger } from 'pino';
import { hasReached } from '../kube/watch/resource-version.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';

/** Read-your-writes for a controller: a key is not worked on again before the caches show what was written for it. */
export interface Fence {
  /** Remembers a write for `key` by its answer; `store` is the cache that will show it. */
  wrote<T extends KubeObject>(key: string, store: ReadStore<T>, answer: T): void;
  /** Remembers a delete for `key`, by the object that was deleted. */
  deleted<T extends KubeObject>(key: string, store: ReadStore<T>, object: T): void;
  /** Milliseconds until `key` may run at the latest: 0 when the caches show everything. */
  wait(key: string): number;
}

interface Mark {
  expires: number;
  isSeen: () => boolean;
}

/**
 * After this a key runs on what the caches have: a lost event must not freeze it. Deterministic names and preconditions
 * keep a stale run harmless.
 */
const EXPIRY_MS = 30_000;
const FIRST_SWEEP = 1_024;

/** After KEP-5647 (stale controller mitigation), with the expiry of KubeVirt's expectations. */
export function createFence(clock: Clock, log: Logger): Fence {
  /** Controller key to the object written to its mark. */
  const marks = new Map<string, Map<string, Mark>>();
  const storeIds = new WeakMap<object, number>();
  let stores = 0;
  let sweepAt = FIRST_SWEEP;

  function idOf(store: object, objectKey: string): string {
    let id = storeIds.get(store);
    if (id === undefined) storeIds.set(store, (id = stores += 1));
    return `${id} ${objectKey}`;
  }

  /** Drops the marks that are seen or too old; how long the rest may still take. */
  function wait(key: string): number {
    const open = marks.get(key);
    if (!open) return 0;
    const now = clock.monotonic();
    let longest = 0;
    for (const [id, mark] of open) {
      if (mark.isSeen()) open.delete(id);
      else if (mark.expires > now) longest = Math.max(longest, mark.expires - now);
      else {
        open.delete(id);
        log.warn({ key }, 'A write did not appear in the watch cache in time; going on without it');
      }
    }
    if (open.size === 0) marks.delete(key);
    return longest;
  }

  function remember(key: string, id: string, isSeen: () => boolean): void {
    if (isSeen()) return;
    // Keys that nobody asks for again, for example of a deleted object, would stay for ever.
    if (marks.size >= sweepAt) {
      for (const known of marks.keys()) wait(known);
      sweepAt = Math.max(FIRST_SWEEP, marks.size * 2);
    }
    const mark = { expires: clock.monotonic() + EXPIRY_MS, isSeen };
    const open = marks.get(key);
    if (open) open.set(id, mark);
    else marks.set(key, new Map([[id, mark]]));
  }

  return {
    wrote(key, store, answer) {
      const objectKey = keyOf(answer);
      const { resourceVersion = '' } = answer.metadata;
      remember(key, idOf(store, objectKey), () => {
        const seen = store.get(objectKey)?.metadata.resourceVersion;
        return (
          (seen !== undefined && hasReached(seen, resourceVersion)) ||
          hasReached(store.resourceVersion, resourceVersion)
        );
      });
    },
    deleted(key, store, object) {
      const objectKey = keyOf(object);
      const { uid } = object.metadata;
      remember(key, idOf(store, objectKey), () => {
        const seen = store.get(objectKey)?.metadata;
        return seen === undefined || seen.uid !== uid || seen.deletionTimestamp !== undefined;
      });
    },
    wait,
  };
}
