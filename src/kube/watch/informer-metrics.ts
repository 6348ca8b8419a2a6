import { Counter, Gauge, type Registry } from 'prom-client';

/** What a metrics scrape reads from a running informer. */
export interface InformerReading {
  objects: number;
  synced: boolean;
  /** Seconds since the API server last proved the cache fresh: by an event, a bookmark or a list. */
  staleSeconds: number;
}

export interface InformerMetrics {
  /** Counts a complete list, or one that failed or was refused. */
  listed(kind: string, result: 'ok' | 'error'): void;
  /** Counts the end of a watch. */
  watchEnded(kind: string, cause: string): void;
  received(kind: string, events: number): void;
  /** Reads the informer at every scrape until the returned function is called. */
  track(kind: string, read: () => InformerReading): () => void;
}

/** Metrics of watch caches; controller-runtime has none to be named after. */
export function createInformerMetrics(registry: Registry): InformerMetrics {
  const registers = [registry];
  const readers = new Map<() => InformerReading, string>();
  const lists = new Counter({
    name: 'berth_informer_lists_total',
    help: 'Complete lists made to fill or repair a watch cache.',
    labelNames: ['kind', 'result'],
    registers,
  });
  const ends = new Counter({
    name: 'berth_informer_watch_ends_total',
    help: 'Watches that ended, by cause.',
    labelNames: ['kind', 'cause'],
    registers,
  });
  const events = new Counter({
    name: 'berth_informer_events_total',
    help: 'Watch events received, bookmarks included.',
    labelNames: ['kind'],
    registers,
  });

  function gauge(name: string, help: string, value: (reading: InformerReading) => number): void {
    const metric: Gauge<'kind'> = new Gauge({
      name,
      help,
      labelNames: ['kind'],
      registers,
      collect() {
        this.reset();
        for (const [read, kind] of readers) this.set({ kind }, value(read()));
      },
    });
    metric.reset();
  }
  gauge('berth_informer_objects', 'Objects in the watch cache.', (reading) => reading.objects);
  gauge('berth_informer_synced', 'Whether the first complete list has arrived.', (reading) => (reading.synced ? 1 : 0));
  gauge(
    'berth_informer_stale_seconds',
    'Seconds since an event, a bookmark or a list last proved the cache fresh.',
    (reading) => reading.staleSeconds,
  );

  return {
    listed: (kind, result) => lists.inc({ kind, result }),
    watchEnded: (kind, cause) => ends.inc({ kind, cause }),
    received: (kind, count) => events.inc({ kind }, count),
    track(kind, read) {
      readers.set(read, kind);
      return () => readers.delete(read);
    },
  };
}
