import type { Logger } from 'pino';
import type { StoreChange } from '../../kube/watch/store.ts';
import { keyOf } from '../../kube/types.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';

/** No cluster should ever have more at a time. Beyond this the oldest is dropped, with an error in the log. */
const MAX = 4_096;

/** Instances that went without a usage record, because another client removed their finalizer. */
export class UnrecordedInstances {
  readonly #log: Logger;
  /** uids of instances that have their record and are about to go. */
  readonly #recorded = new Set<string>();
  readonly #unrecorded = new Map<string, GpuInstance>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Takes note of a change of the cache. Returns the key to look at, if there is one. */
  noteChange({ before, after }: StoreChange<GpuInstance>): string[] {
    const { uid = '' } = before?.metadata ?? {};
    if (before === undefined || after?.metadata.uid === uid || this.#recorded.delete(uid)) return [];
    if ((before.status?.incarnation ?? 0) === 0) return [];
    this.#unrecorded.set(uid, before);
    const [oldest] = this.#unrecorded.values();
    if (this.#unrecorded.size > MAX && oldest !== undefined) {
      this.forget(oldest);
      this.#log.error({ instance: keyOf(oldest), usage: oldest.status?.usage }, 'Usage of an instance was dropped');
    }
    return [keyOf(before)];
  }

  /** The usage record of an instance is written: the instance may go. */
  markRecorded({ metadata }: GpuInstance): void {
    this.#recorded.add(metadata.uid ?? '');
  }

  /** Those that had this key, the newest last. */
  withKey(key: string): GpuInstance[] {
    return [...this.#unrecorded.values()].filter((instance) => keyOf(instance) === key);
  }

  forget({ metadata }: GpuInstance): void {
    this.#unrecorded.delete(metadata.uid ?? '');
  }
}
