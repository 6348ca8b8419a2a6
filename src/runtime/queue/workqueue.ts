import type { Clock } from '../../lib/clock.ts';
import { createFifo } from './fifo.ts';
import type { QueueMetrics } from './queue-metrics.ts';

/** `low` yields to `normal`, but never starves: every eighth key is a low one while there are any. */
export type Priority = 'normal' | 'low';

/**
 * Keys that wait for a worker. Each key waits at most once however often it is added, is never given to two workers at
 * a time, and is given again when it was added while being worked on. First come, first served within a priority.
 */
export interface WorkQueue {
  /** Ignored after shutdown. A waiting low key that is added as normal becomes normal. */
  add: (key: string, priority?: Priority) => void;
  /** Adds after `ms`, at most a day; of several the soonest counts. Forgotten when a worker takes the key before. */
  addAfter(key: string, ms: number): void;
  /** The next key, waiting for one if need be; undefined after shutdown. Whoever takes a key must say `done`. */
  take(): Promise<string | undefined>;
  done(key: string): void;
  /** Gives out nothing more: what waits is dropped, since whoever starts next lists everything again. */
  shutDown(): void;
  /** Keys that a worker could take now. */
  readonly size: number;
}

const LOW_TURN = 8;
// Node fires a timer of more than 2^31 ms at once; a reconcile a day too often does no harm.
const MAX_DELAY_MS = 24 * 3_600_000;

/** After client-go util/workqueue/queue.go and delaying_queue.go, with controller-runtime's low priority. */
export function createWorkQueue(clock: Clock, metrics?: QueueMetrics): WorkQueue {
  const lanes = { normal: createFifo<string>(), low: createFifo<string>() };
  /** Keys that wait in a lane. An entry of a lane that disagrees with this map is stale and skipped. */
  const waiting = new Map<string, Priority>();
  const processing = new Set<string>();
  /** Added while processing: they wait again when done. */
  const dirty = new Map<string, Priority>();
  const delayed = new Map<string, { due: number; cancel: () => void }>();
  const takers = createFifo<(key: string | undefined) => void>();
  let idleTakers = 0;
  let taken = 0;
  let stopped = false;

  function shiftLane(priority: Priority): string | undefined {
    for (let key = lanes[priority].shift(); key !== undefined; key = lanes[priority].shift()) {
      if (waiting.get(key) === priority) return key;
    }
    return undefined;
  }

  function shiftKey(): string | undefined {
    taken += 1;
    const order: Priority[] = taken % LOW_TURN === 0 ? ['low', 'normal'] : ['normal', 'low'];
    for (const priority of order) {
      const key = shiftLane(priority);
      if (key !== undefined) return key;
    }
    return undefined;
  }

  function startWork(): string | undefined {
    const key = shiftKey();
    if (key === undefined) return undefined;
    waiting.delete(key);
    processing.add(key);
    delayed.get(key)?.cancel();
    delayed.delete(key);
    metrics?.taken(key, waiting.size);
    return key;
  }

  function enqueue(key: string, priority: Priority): void {
    waiting.set(key, priority);
    lanes[priority].push(key);
    if (idleTakers === 0) return;
    idleTakers -= 1;
    takers.shift()?.(startWork());
  }

  function add(key: string, priority: Priority = 'normal'): void {
    if (stopped) return;
    const known = processing.has(key) ? dirty : waiting;
    const before = known.get(key);
    if (before === 'normal' || before === priority) return;
    if (before === undefined) metrics?.added(key, waiting.size + (processing.has(key) ? 0 : 1));
    if (processing.has(key)) dirty.set(key, priority);
    else enqueue(key, priority);
  }

  return {
    add,
    addAfter(key, ms) {
      if (stopped) return;
      metrics?.retried();
      if (ms <= 0) {
        add(key);
        return;
      }
      const delay = Math.min(ms, MAX_DELAY_MS);
      const due = clock.monotonic() + delay;
      const known = delayed.get(key);
      if (known && known.due <= due) return;
      known?.cancel();
      const cancel = clock.setTimeout(() => {
        delayed.delete(key);
        add(key);
      }, delay);
      delayed.set(key, { due, cancel });
    },
    take() {
      if (stopped) return Promise.resolve(undefined);
      const key = startWork();
      if (key !== undefined) return Promise.resolve(key);
      idleTakers += 1;
      return new Promise((resolve) => {
        takers.push(resolve);
      });
    },
    done(key) {
      if (!processing.delete(key)) return;
      metrics?.finished(key);
      const again = dirty.get(key);
      dirty.delete(key);
      if (again !== undefined && !stopped) enqueue(key, again);
    },
    shutDown() {
      stopped = true;
      waiting.clear();
      dirty.clear();
      for (const { cancel } of delayed.values()) cancel();
      delayed.clear();
      for (; idleTakers > 0; idleTakers -= 1) takers.shift()?.(undefined);
    },
    get size() {
      return waiting.size;
    },
  };
}
