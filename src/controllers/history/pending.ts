import { keyOf } from '../../kube/types.ts';
import type { ReadStore, StoreChange } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { sameHistory } from '../../resources/history-fold.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import type { Source } from '../../runtime/source.ts';
import { historyRef } from '../../resources/instance-history.ts';

/** Milliseconds between a change and the write of it: a start, with all its stages, is one write. */
const DEBOUNCE_MS = 15_000;

/** An instance with news, as it was seen last. */
export interface News {
  instance: GpuInstance;
  gone: boolean;
  /** As it was when its last start ended, where another start follows so soon that the status says no more of it. */
  ended?: GpuInstance | undefined;
}

/** The instances whose news stand in no history yet, by the key of the history. */
export class PendingNews implements Source {
  readonly #store: ReadStore<GpuInstance>;
  readonly #clock: Clock;
  readonly #news = new Map<string, News>();
  readonly #timers = new Map<string, () => void>();
  #add: (key: string) => void = () => undefined;

  constructor(store: ReadStore<GpuInstance>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get synced(): Promise<void> {
    return this.#store.synced;
  }

  start(add: (key: string) => void): () => void {
    this.#add = add;
    const unfollow = this.#store.onChange((change) => this.#onChange(change));
    return () => {
      unfollow();
      for (const cancel of this.#timers.values()) cancel();
    };
  }

  get(key: string): News | undefined {
    return this.#news.get(key);
  }

  /** Says that the news are written. What came meanwhile stays. */
  written(key: string, news: News): void {
    if (this.#news.get(key) === news) this.#news.delete(key);
  }

  /** Has the history written soon, and at once when the instance is gone. Later news before that go into the same write. */
  note(instance: GpuInstance, gone: boolean, ended?: GpuInstance): void {
    const key = keyOf(historyRef(instance));
    this.#news.set(key, { instance, gone, ended: ended ?? this.#news.get(key)?.ended });
    const onTime = (): void => {
      this.#timers.delete(key);
      this.#add(key);
    };
    // Nothing follows, and from now on only its history says that it was there.
    if (gone) {
      this.#timers.get(key)?.();
      onTime();
    } else if (!this.#timers.has(key)) {
      this.#timers.set(key, this.#clock.setTimeout(onTime, DEBOUNCE_MS));
    }
  }

  #onChange({ before, after }: StoreChange<GpuInstance>): void {
    if (before !== undefined && before.metadata.uid !== after?.metadata.uid) this.note(before, true);
    if (after === undefined) return;
    const earlier = before?.metadata.uid === after.metadata.uid ? before : undefined;
    const ended = earlier?.status?.ending !== undefined && after.status?.ending === undefined ? earlier : undefined;
    if (earlier === undefined || !sameHistory(earlier, after)) this.note(after, false, ended);
  }
}
