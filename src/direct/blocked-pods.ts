import type { Clock } from '../lib/clock.ts';
import { Lru } from '../lib/lru.ts';

const MOST = 10_000;
/** Milliseconds after which the direct way is tried again: a network policy may have changed. */
const FORGET_MS = 10 * 60_000;

/** The pods to which the direct way was closed, so that no login waits for it again. */
export class BlockedPods {
  readonly #clock: Clock;
  readonly #until = new Lru<string, number>(MOST);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(podUid: string): void {
    this.#until.set(podUid, this.#clock.monotonic() + FORGET_MS);
  }

  has(podUid: string): boolean {
    return (this.#until.get(podUid) ?? Number.NEGATIVE_INFINITY) > this.#clock.monotonic();
  }
}
