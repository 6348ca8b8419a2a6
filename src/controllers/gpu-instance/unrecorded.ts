import type { Logger } from 'pino';
import type { StoreChange } from '../../kube/watch/store.ts';
import { keyOf } from '../../kube/types.ts';
import { type Clock, wallTimeOf } from '../../lib/clock.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';

/** No cluster should ever have more at a time. Beyond this the oldest is dropped, with an error in the log. */
const MAX = 4_096;
/** Many more than go at a time: the mark of one that went before it was made stays. */
const MAX_RECORDED = 65_536;
/**
 * Milliseconds that a replica remembers what went before its term. The leader of that moment saw it too and wrote the
 * record, which an operator may have exported and deleted since, though no sooner than a day later. To write it anew
 * would be a second bill.
 */
const MEMORY_MS = 3_600_000;

/** An instance that went, and when this replica saw that. */
export interface Vanished {
  instance: GpuInstance;
  /** Milliseconds since the epoch. No use is billed after it, whenever the record is written. */
  at: number;
}

/** Instances that went without a usage record, because another client removed their finalizer. */
export class UnrecordedInstances {
  readonly #log: Logger;
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  /** uids of instances that have their record and are about to go. */
  readonly #recorded = new Set<string>();
  /** By uid, the oldest first. */
  readonly #unrecorded = new Map<string, Vanished & { notedAt: number }>();
  #add: AddKey | undefined;

  /** Wakes the controller of a term as the leader. What is left when the term begins stays until it is written. */
  readonly source: Source = {
    synced: Promise.resolve(),
    start: (add) => {
      this.#dropOld();
      this.#add = add;
      for (const { instance } of this.#unrecorded.values()) add(keyOf(instance));
      return () => (this.#add = undefined);
    },
  };

  constructor(log: Logger, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Takes note of a change of the cache, also while this replica does not lead: the leader may be about to end. */
  noteChange({ before, after }: StoreChange<GpuInstance>): void {
    const { uid = '' } = before?.metadata ?? {};
    // It is back, as after a restore.
    if (after?.metadata.uid !== undefined) this.#unrecorded.delete(after.metadata.uid);
    if (before === undefined || after?.metadata.uid === uid || this.#recorded.delete(uid)) return;
    const { incarnation = 0, claim } = before.status ?? {};
    // Only the leader knows which records it wrote. It removes the claim before it writes one.
    if (this.#add === undefined ? claim === undefined : incarnation === 0) return;
    if (this.#add === undefined) this.#dropOld();
    this.#unrecorded.set(uid, { instance: before, at: this.#clock.now(), notedAt: this.#clock.monotonic() });
    const [oldest] = this.#unrecorded.values();
    if (this.#unrecorded.size > MAX && oldest !== undefined) {
      const { instance } = oldest;
      this.forget(instance);
      this.#log.error({ instance: keyOf(instance), usage: instance.status?.usage }, 'Usage of an instance was dropped');
    }
    this.#add?.(keyOf(before));
  }

  /** The usage record of an instance is written: the instance may go. */
  markRecorded({ metadata }: GpuInstance): void {
    this.#recorded.add(metadata.uid ?? '');
    const [oldest] = this.#recorded;
    if (this.#recorded.size > MAX_RECORDED && oldest !== undefined) this.#recorded.delete(oldest);
  }

  /** Those that had this key, the newest last. The clock may have been ahead when they went, and is right by now. */
  withKey(key: string): Vanished[] {
    return [...this.#unrecorded.values()]
      .filter(({ instance }) => keyOf(instance) === key)
      .map(({ instance, at, notedAt }) => ({ instance, at: Math.min(at, wallTimeOf(this.#clock, notedAt)) }));
  }

  all(): GpuInstance[] {
    return [...this.#unrecorded.values()].map(({ instance }) => instance);
  }

  forget({ metadata }: GpuInstance): void {
    this.#unrecorded.delete(metadata.uid ?? '');
  }

  #dropOld(): void {
    const since = this.#clock.monotonic() - MEMORY_MS;
    for (const [uid, { notedAt }] of this.#unrecorded) if (notedAt <= since) this.#unrecorded.delete(uid);
  }
}
