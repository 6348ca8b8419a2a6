import type { Logger } from 'pino';
import { shownIn } from '../kube/watch/resource-version.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';

interface Mark {
  expires: number;
  isSeen: () => boolean;
}

// After this time a key runs on what the caches have: a lost event must not freeze it. Deterministic names and
// preconditions keep a stale run harmless.
const EXPIRY_MS = 30_000;
const FIRST_SWEEP = 1_024;

/**
 * Read-your-writes for a controller: no worker gets a key again before the caches show what was written for it. After
 * KEP-5647 (stale controller mitigation), with the expiry of KubeVirt's expectations.
 */
export class Fence {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The writes of each key that its caches do not show yet, by store and object. */
  readonly #marks = new Map<string, Map<string, Mark>>();
  readonly #storeIds = new WeakMap<object, number>();
  #stores = 0;
  #sweepAt = FIRST_SWEEP;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Remembers a write for `key` by its answer; `store` is the cache that will show it. */
  wrote<T extends KubeObject>(key: string, store: ReadStore<T>, answer: T): void {
    this.#remember(key, this.#idOf(store, keyOf(answer)), shownIn(store, answer));
  }

  /** Remembers a delete for `key`, by the object that was deleted. */
  deleted<T extends KubeObject>(key: string, store: ReadStore<T>, object: T): void {
    const objectKey = keyOf(object);
    const { uid } = object.metadata;
    this.#remember(key, this.#idOf(store, objectKey), () => {
      const seen = store.get(objectKey)?.metadata;
      return seen === undefined || seen.uid !== uid || seen.deletionTimestamp !== undefined;
    });
  }

  /** Milliseconds until `key` may run at the latest: 0 when the caches show every write. */
  wait(key: string): number {
    const open = this.#marks.get(key);
    if (!open) return 0;
    const now = this.#clock.monotonic();
    let longest = 0;
    for (const [id, mark] of open) {
      if (mark.isSeen()) open.delete(id);
      else if (mark.expires > now) longest = Math.max(longest, mark.expires - now);
      else {
        open.delete(id);
        this.#log.warn({ key }, 'A write did not appear in the watch cache in time; continuing without it');
      }
    }
    if (open.size === 0) this.#marks.delete(key);
    return longest;
  }

  #idOf(store: object, objectKey: string): string {
    let id = this.#storeIds.get(store);
    if (id === undefined) this.#storeIds.set(store, (id = this.#stores += 1));
    return `${id} ${objectKey}`;
  }

  #remember(key: string, id: string, isSeen: () => boolean): void {
    if (isSeen()) return;
    // No worker asks again for the key of a deleted object, so its marks would stay for ever.
    if (this.#marks.size >= this.#sweepAt) {
      for (const known of this.#marks.keys()) this.wait(known);
      this.#sweepAt = Math.max(FIRST_SWEEP, this.#marks.size * 2);
    }
    const mark = { expires: this.#clock.monotonic() + EXPIRY_MS, isSeen };
    const open = this.#marks.get(key);
    if (open) open.set(id, mark);
    else this.#marks.set(key, new Map([[id, mark]]));
  }
}
