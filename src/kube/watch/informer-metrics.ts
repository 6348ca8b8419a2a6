import { Counter, Gauge, type Registry } from 'prom-client';

/** What a metrics scrape reads from a running informer. */
export interface InformerReading {
  objects: number;
  synced: boolean;
  /** Seconds since the API server last proved the cache fresh: by an event, a bookmark or a list. */
  staleSeconds: number;
}

/** Metrics of watch caches; controller-runtime has none whose names they could take. */
export class InformerMetrics {
  readonly #registers: Registry[];
  readonly #readers = new Map<() => InformerReading, string>();
  readonly #lists;
  readonly #watchEnds;
  readonly #events;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#registers = registers;
    this.#lists = new Counter({
      name: 'berth_informer_lists_total',
      help: 'Complete lists made to fill or repair a watch cache.',
      labelNames: ['kind', 'result'],
      registers,
    });
    this.#watchEnds = new Counter({
      name: 'berth_informer_watch_ends_total',
      help: 'Watches that ended, by cause.',
      labelNames: ['kind', 'cause'],
      registers,
    });
    this.#events = new Counter({
      name: 'berth_informer_events_total',
      help: 'Watch events received, bookmarks included.',
      labelNames: ['kind'],
      registers,
    });
    this.#gauge('berth_informer_objects', 'Objects in the watch cache.', ({ objects }) => objects);
    this.#gauge('berth_informer_synced', 'Whether the first complete list has arrived.', ({ synced }) =>
      synced ? 1 : 0,
    );
    this.#gauge(
      'berth_informer_stale_seconds',
      'Seconds since an event, a bookmark or a list last proved the cache fresh.',
      ({ staleSeconds }) => staleSeconds,
    );
  }

  /** Counts a complete list, or one that failed or was refused. */
  listed(kind: string, result: 'ok' | 'error'): void {
    this.#lists.inc({ kind, result });
  }

  watchEnded(kind: string, cause: string): void {
    this.#watchEnds.inc({ kind, cause });
  }

  received(kind: string, events: number): void {
    this.#events.inc({ kind }, events);
  }

  /** Reads the informer at every scrape, until the caller calls the returned function. */
  track(kind: string, read: () => InformerReading): () => void {
    this.#readers.set(read, kind);
    return () => this.#readers.delete(read);
  }

  #gauge(name: string, help: string, value: (reading: InformerReading) => number): void {
    const readers = this.#readers;
    const gauge: Gauge<'kind'> = new Gauge({
      name,
      help,
      labelNames: ['kind'],
      registers: this.#registers,
      collect() {
        this.reset();
        for (const [read, kind] of readers) this.set({ kind }, value(read()));
      },
    });
    gauge.reset();
  }
}
