import type { Logger } from 'pino';
import type { StoreChange } from '../../kube/watch/store.ts';
import { keyOf } from '../../kube/types.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';

/**
 * Instances that went although they were not cleaned up, because somebody took the finalizer away: what they cost is
 * still to be written down.
 */
export interface Vanished {
  /** Takes note of a change of the cache; the keys to look at for it. */
  note(change: StoreChange<GpuInstance>): string[];
  /** Its record is written: it may go. */
  isBilled(instance: GpuInstance): void;
  /** Those that had this key, the newest last. */
  of(key: string): readonly GpuInstance[];
  forget(uid: string): void;
}

/** More at a time than this are not expected in any cluster: the oldest is given up, with a line in the log. */
const MAX = 4_096;

export function createVanished(log: Logger): Vanished {
  const billed = new Set<string>();
  const gone = new Map<string, GpuInstance>();
  return {
    note({ before, after }) {
      const { uid = '' } = before?.metadata ?? {};
      if (before === undefined || after?.metadata.uid === uid || billed.delete(uid)) return [];
      if ((before.status?.incarnation ?? 0) === 0) return [];
      gone.set(uid, before);
      const oldest = gone.entries().next().value;
      if (gone.size > MAX && oldest !== undefined) {
        gone.delete(oldest[0]);
        log.error({ instance: keyOf(oldest[1]), usage: oldest[1].status?.usage }, 'A bill is given up');
      }
      return [keyOf(before)];
    },
    isBilled: ({ metadata }) => void billed.add(metadata.uid ?? ''),
    of: (key) => [...gone.values()].filter((instance) => keyOf(instance) === key),
    forget: (uid) => void gone.delete(uid),
  };
}
