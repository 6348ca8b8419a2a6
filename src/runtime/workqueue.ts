import { refOf } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { QueueMetrics } from './queue-metrics.ts';

/** `low` yields to `normal` but never starves: while low keys wait, every eighth key is one of them. */
export type Priority = 'normal' | 'low';

const LOW_TURN = 8;
// Node fires a timer of more than 2^31 ms at once; one reconcile a day too many does no harm.
const MAX_DELAY_MS = 24 * 3_600_000;

/** First in, first out; both ends in constant time, which an array's `shift` does not promise. */
class Fifo<T> {
  #incoming: T[] = [];
  #outgoing: T[] = [];

  push(value: T): void {
    this.#incoming.push(value);
  }

  shift(): T | undefined {
    if (this.#outgoing.length === 0) {
      this.#outgoing = this.#incoming.toReversed();
      this.#incoming = [];
    }
    return this.#outgoing.pop();
  }

  get isEmpty(): boolean {
    return this.#incoming.length === 0 && this.#outgoing.length === 0;
  }
}

/** Keys in which namespaces take turns, each with its own in order: who changes a thousand objects holds up no other. */
class FairLane {
  readonly #lines = new Map<string, Fifo<string>>();
  /** The owners of these lines. */
  readonly #turns = new Fifo<string>();

  push(key: string): void {
    const { namespace: owner = '' } = refOf(key);
    let line = this.#lines.get(owner);
    if (line === undefined) {
      this.#lines.set(owner, (line = new Fifo()));
      this.#turns.push(owner);
    }
    line.push(key);
  }

  shift(): string | undefined {
    const owner = this.#turns.shift();
    const line = owner === undefined ? undefined : this.#lines.get(owner);
    if (owner === undefined || line === undefined) return undefined;
    const key = line.shift();
    if (line.isEmpty) this.#lines.delete(owner);
    else this.#turns.push(owner);
    return key;
  }
}

/**
 * Keys that wait for a worker. A key waits at most once, however often it is added. Two workers never have the same key
 * at a time; a key that is added while a worker has it waits again afterwards. Within a priority namespaces take turns, and
 * first come is first served in each. After client-go util/workqueue/queue.go and delaying_queue.go, with controller-runtime's low priority.
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #metrics: QueueMetrics | undefined;
  readonly #lanes = { normal: new FairLane(), low: new FairLane() };
  /** Keys that wait in a lane. An entry of a lane that disagrees with this map is stale and skipped. */
  readonly #waiting = new Map<string, Priority>();
  readonly #processing = new Set<string>();
  /** Keys that were added while a worker had them. */
  readonly #dirty = new Map<string, Priority>();
  readonly #delayed = new Map<string, { due: number; cancel: () => void }>();
  readonly #takers = new Fifo<(key: string | undefined) => void>();
  #idleTakers = 0;
  #taken = 0;
  #stopped = false;

  constructor(clock: Clock, metrics?: QueueMetrics) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** Keys that a worker could take now. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Ignored after shutdown. A low key that waits becomes normal when it is added as normal. */
  add(key: string, priority: Priority = 'normal'): void {
    if (this.#stopped) return;
    const isProcessing = this.#processing.has(key);
    const before = (isProcessing ? this.#dirty : this.#waiting).get(key);
    if (before === 'normal' || before === priority) return;
    if (before === undefined) this.#metrics?.added(key, this.#waiting.size + (isProcessing ? 0 : 1));
    if (isProcessing) this.#dirty.set(key, priority);
    else this.#enqueue(key, priority);
  }

  /** Adds the key after `ms`, at most a day; the soonest of several calls counts. Forgotten when a worker takes the key. */
  addAfter(key: string, ms: number): void {
    if (this.#stopped) return;
    this.#metrics?.retried();
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const delay = Math.min(ms, MAX_DELAY_MS);
    const due = this.#clock.monotonic() + delay;
    const known = this.#delayed.get(key);
    if (known && known.due <= due) return;
    known?.cancel();
    const cancel = this.#clock.setTimeout(() => {
      this.#delayed.delete(key);
      this.add(key);
    }, delay);
    this.#delayed.set(key, { due, cancel });
  }

  /** The next key, as soon as there is one; undefined after shutdown. The worker must call `done` with the key. */
  take(): Promise<string | undefined> {
    if (this.#stopped) return Promise.resolve(undefined);
    const key = this.#startWork();
    if (key !== undefined) return Promise.resolve(key);
    this.#idleTakers += 1;
    return new Promise((resolve) => {
      this.#takers.push(resolve);
    });
  }

  done(key: string): void {
    if (!this.#processing.delete(key)) return;
    this.#metrics?.finished(key);
    const again = this.#dirty.get(key);
    this.#dirty.delete(key);
    if (again !== undefined && !this.#stopped) this.#enqueue(key, again);
  }

  /** Gives out no more keys and drops those that wait: the next leader lists everything again. */
  shutDown(): void {
    this.#stopped = true;
    this.#waiting.clear();
    this.#dirty.clear();
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    for (; this.#idleTakers > 0; this.#idleTakers -= 1) this.#takers.shift()?.(undefined);
  }

  #enqueue(key: string, priority: Priority): void {
    this.#waiting.set(key, priority);
    this.#lanes[priority].push(key);
    if (this.#idleTakers === 0) return;
    this.#idleTakers -= 1;
    this.#takers.shift()?.(this.#startWork());
  }

  #startWork(): string | undefined {
    this.#taken += 1;
    const isLowTurn = this.#taken % LOW_TURN === 0;
    const key = isLowTurn
      ? (this.#shiftLane('low') ?? this.#shiftLane('normal'))
      : (this.#shiftLane('normal') ?? this.#shiftLane('low'));
    if (key === undefined) return undefined;
    this.#waiting.delete(key);
    this.#processing.add(key);
    this.#delayed.get(key)?.cancel();
    this.#delayed.delete(key);
    this.#metrics?.taken(key, this.#waiting.size);
    return key;
  }

  #shiftLane(priority: Priority): string | undefined {
    const lane = this.#lanes[priority];
    for (let key = lane.shift(); key !== undefined; key = lane.shift()) {
      if (this.#waiting.get(key) === priority) return key;
    }
    return undefined;
  }
}
