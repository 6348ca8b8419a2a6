import { signal, type Signal } from '@preact/signals';
import type { InstanceRecord } from '../../../wire/records.ts';
import type { ServerEvent } from '../calls/follow.ts';

interface Summary {
  running: number;
  perHour: number;
  currency: string;
  waiting: number;
}

const NOTHING: Summary = { running: 0, perHour: 0, currency: 'USD', waiting: 0 };

/**
 * The instances of a tenant. Each has a signal of its own, so that a change paints one row; changes of one frame are
 * applied together.
 */
export class LiveList {
  /** Newest first; undefined until the first snapshot. */
  readonly ids: Signal<readonly string[] | undefined> = signal(undefined);
  /** Of all instances: how many run, what these cost in an hour, and how many wait. */
  readonly summary: Signal<Summary> = signal(NOTHING);
  readonly #records = new Map<string, Signal<InstanceRecord>>();
  #waiting: ServerEvent[] = [];

  readonly add = (event: ServerEvent): void => {
    this.#waiting.push(event);
    if (this.#waiting.length > 1) return;
    // A page in the background gets no frames.
    if (document.hidden) queueMicrotask(this.#apply);
    else requestAnimationFrame(this.#apply);
  };

  record(id: string): Signal<InstanceRecord> | undefined {
    return this.#records.get(id);
  }

  readonly #apply = (): void => {
    const events = this.#waiting;
    this.#waiting = [];
    const known = this.ids.value;
    for (const { type, data } of events) {
      if (type === 'snapshot' || type === 'resync') this.#reset((data as { data: InstanceRecord[] }).data);
      else if (type === 'instance') this.#set(data as InstanceRecord);
      else if (type === 'deleted') this.#records.delete((data as { id: string }).id);
    }
    const ids = [...this.#records.keys()].toReversed();
    if (known === undefined || ids.length !== known.length || ids.some((id, at) => id !== known[at])) {
      this.ids.value = ids;
    }
    this.#sum();
  };

  /** In one walk for all changes of a frame, and not by the signals: a thousand would tell of themselves each time. */
  #sum(): void {
    const all = [...this.#records.values()].map((record) => record.peek());
    const running = all.filter(({ state }) => state === 'running');
    const found: Summary = {
      running: running.length,
      perHour: running.reduce((sum, { price_per_hour: price }) => sum + Number(price ?? 0), 0),
      currency: running.find(({ currency }) => currency)?.currency ?? 'USD',
      waiting: all.filter(({ state }) => state === 'pending' || state === 'interrupted').length,
    };
    const before = this.summary.peek();
    const isSame = Object.entries(found).every(([name, value]) => before[name as keyof Summary] === value);
    if (!isSame) this.summary.value = found;
  }

  #reset(all: readonly InstanceRecord[]): void {
    const kept = new Set(all.map(({ id }) => id));
    for (const id of this.#records.keys()) if (!kept.has(id)) this.#records.delete(id);
    for (const one of all) this.#set(one);
  }

  #set(record: InstanceRecord): void {
    const known = this.#records.get(record.id);
    if (known === undefined) this.#records.set(record.id, signal(record));
    else known.value = record;
  }
}
