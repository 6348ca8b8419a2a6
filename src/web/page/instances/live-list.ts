import { signal, type Signal } from '@preact/signals';
import type { InstanceRecord } from '../../../http/schemas/instance.ts';
import type { ServerEvent } from '../calls/follow.ts';

/**
 * The instances of a tenant. Each has a signal of its own, so that a change paints one row; changes of one frame are
 * applied together.
 */
export class LiveList {
  /** Newest first; undefined until the first snapshot. */
  readonly ids: Signal<readonly string[] | undefined> = signal(undefined);
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

  /** How many instances have a state for which `counts` is true, and what they cost in an hour. */
  sum(counts: (record: InstanceRecord) => boolean): { count: number; perHour: number; currency: string } {
    // Of those that are there now: reading the ids tells the view when there are others.
    const all = (this.ids.value ?? []).flatMap((id) => this.#records.get(id)?.value ?? []);
    const found = all.filter(counts);
    const perHour = found.reduce((sum, { price_per_hour: price }) => sum + Number(price ?? 0), 0);
    return { count: found.length, perHour, currency: found.find(({ currency }) => currency)?.currency ?? 'USD' };
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
  };

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
