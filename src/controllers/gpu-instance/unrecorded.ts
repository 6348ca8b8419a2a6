import type { Logger } from 'pino';
import type { StoreChange } from '../../kube/watch/store.ts';
import { keyOf } from '../../kube/types.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';

/** No cluster should ever have more at a time. Beyond this the oldest is dropped, with an error in the log. */
const MAX = 4_096;

/** Instances that went without a usage record, because another client removed their finalizer. */
export class UnrecordedInstances {
  readonly #log: Logger;
  /** uids of instances that have their record and are about to go. */
  readonly #recorded = new Set<string>();
  readonly #unrecorded = new Map<string, GpuInstance>();
  #add: AddKey | undefined;

  /** Wakes the controller of a term as the leader. */
  readonly source: Source = {
    synced: Promise.resolve(),
    start: (add) => {
      this.#add = add;
      for (const instance of this.#unrecorded.values()) add(keyOf(instance));
      return () => (this.#add = undefined);
    },
  };

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Takes note of a change of the cache, also while this replica does not lead: the leader may be about to end. */
  noteChange({ before, after }: StoreChange<GpuInstance>): void {
    const { uid = '' } = before?.metadata ?? {};
    if (before === undefined || after?.metadata.uid === uid || this.#recorded.delete(uid)) return;
    const { incarnation = 0, claim } = before.status ?? {};
    // Only the leader knows which records it wrote. It removes the claim before it writes one.
    if (this.#add === undefined ? claim === undefined : incarnation === 0) return;
    this.#unrecorded.set(uid, before);
    const [oldest] = this.#unrecorded.values();
    if (this.#unrecorded.size > MAX && oldest !== undefined) {
      this.forget(oldest);
      this.#log.error({ instance: keyOf(oldest), usage: oldest.status?.usage }, 'Usage of an instance was dropped');
    }
    this.#add?.(keyOf(before));
  }

  /** The usage record of an instance is written: the instance may go. */
  markRecorded({ metadata }: GpuInstance): void {
    this.#recorded.add(metadata.uid ?? '');
  }

  /** Those that had this key, the newest last. */
  withKey(key: string): GpuInstance[] {
    return [...this.#unrecorded.values()].filter((instance) => keyOf(instance) === key);
  }

  all(): IterableIterator<GpuInstance> {
    return this.#unrecorded.values();
  }

  forget({ metadata }: GpuInstance): void {
    this.#unrecorded.delete(metadata.uid ?? '');
  }
}
