import { type Clock, sleepWith } from '../../../src/lib/clock.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The clock of one process, which can be suspended and killed: its sockets are handled by the same rules. */
export class ProcessClock implements Clock {
  readonly #time: VirtualTime;
  #isDead = false;
  #isFrozen = false;
  /** What came while the process was suspended. It handles its sockets before its timers. */
  #sockets: (() => void)[] = [];
  #timers: (() => void)[] = [];
  readonly #cancels = new Set<() => void>();
  /** How far its wall clock is ahead. */
  aheadMs = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  now(): number {
    return Math.floor(this.#time.wall + this.aheadMs);
  }

  monotonic(): number {
    return this.#time.elapsed;
  }

  setTimeout(callback: () => void, ms: number): () => void {
    return this.#schedule(callback, ms, () => this.#timers);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith((callback, wait) => this.setTimeout(callback, wait), ms, signal);
  }

  /** Something arrives at a socket of the process after `ms`. */
  arrive(callback: () => void, ms: number): () => void {
    return this.#schedule(callback, ms, () => this.#sockets);
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  /** It goes on where it was. */
  thaw(): void {
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    const held = [...this.#sockets, ...this.#timers];
    this.#sockets = [];
    this.#timers = [];
    for (const callback of held) this.setTimeout(callback, 0);
  }

  /** Nothing of it runs any more. */
  kill(): void {
    this.#isDead = true;
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
    this.#sockets = [];
    this.#timers = [];
  }

  #schedule(callback: () => void, ms: number, held: () => (() => void)[]): () => void {
    if (this.#isDead) return () => undefined;
    let isOver = false;
    const once = (): void => {
      if (isOver || this.#isDead) return;
      isOver = true;
      callback();
    };
    const cancelTimer = this.#time.after(ms, () => {
      this.#cancels.delete(cancelTimer);
      if (this.#isFrozen) held().push(once);
      else once();
    });
    this.#cancels.add(cancelTimer);
    return () => {
      isOver = true;
      cancelTimer();
      this.#cancels.delete(cancelTimer);
    };
  }
}
