import type { StoreChange } from '../../kube/watch/store.ts';
import { billedUid, endedBills } from '../../ledger/bills.ts';
import type { Clock } from '../../lib/clock.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import type { Interval } from '../../resources/instances/interval.ts';

/** Twice as long as a watch may be silent before it begins anew. */
const KEPT_MS = 300_000;

/** An instance with nothing but the starts that it no longer has, and when that was seen, monotonic milliseconds. */
interface Moved {
  instance: GpuInstance;
  at: number;
}

function intervalsOf(instance: GpuInstance): Interval[] {
  return endedBills(instance).map(({ interval }) => interval);
}

/** The ended starts that an instance had, and that it has no more, or that went with it. */
function movedBy({ before, after }: StoreChange<GpuInstance>): Interval[] {
  if (before === undefined) return [];
  const had = intervalsOf(before);
  if (had.length === 0 || after === undefined || after.metadata.uid !== before.metadata.uid) return had;
  const left = new Set(intervalsOf(after).map(({ start }) => start));
  return had.filter(({ start }) => !left.has(start));
}

/**
 * The ended starts that no instance has any more, until the usage records that have them are seen: the watch of records
 * may be behind that of instances.
 */
export class MovedBills {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #moved = new Map<string, Moved[]>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  note(change: StoreChange<GpuInstance>): void {
    const intervals = movedBy(change);
    const { before } = change;
    if (before === undefined || intervals.length === 0) return;
    const { namespace = '' } = before.metadata;
    const instance = { ...before, status: { uid: billedUid(before), intervals } };
    const moved = { instance, at: this.#clock.monotonic() };
    this.#moved.set(namespace, [...this.#recent(namespace), moved]);
  }

  /** Of a namespace. The same objects until their records are seen. */
  of(namespace: string, isRecorded: (uid: string, start: number) => boolean): GpuInstance[] {
    const open = this.#recent(namespace).filter(({ instance }) =>
      endedBills(instance).some(({ uid, interval }) => !isRecorded(uid, interval.start)),
    );
    if (open.length === 0) this.#moved.delete(namespace);
    else this.#moved.set(namespace, open);
    return open.map(({ instance }) => instance);
  }

  forget(namespace: string): void {
    this.#moved.delete(namespace);
  }

  #recent(namespace: string): Moved[] {
    const since = this.#clock.monotonic() - KEPT_MS;
    return (this.#moved.get(namespace) ?? []).filter(({ at }) => at > since);
  }
}
