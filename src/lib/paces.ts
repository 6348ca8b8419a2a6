import type { Clock } from './clock.ts';
import { Lru } from './lru.ts';

/** Milliseconds of its pace that an owner may be ahead. */
const AHEAD_MS = 1000;
/** Owners that are remembered. One that is forgotten begins with a whole share. */
const MOST_OWNERS = 4096;

/** What owners take over time, each as much in a second. Who took more waits; what one of them takes is no other's wait. */
export class Paces {
  readonly #clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly #perMs: number;
  /** When what an owner took is paid for, in monotonic milliseconds. */
  readonly #paidAt = new Lru<string, number>(MOST_OWNERS);

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>, perSecond: number) {
    this.#clock = clock;
    this.#perMs = perSecond / 1000;
  }

  /** Counts what an owner has taken. */
  count(owner: string, amount: number): void {
    const now = this.#clock.monotonic();
    this.#paidAt.set(owner, Math.max(this.#paidAt.get(owner) ?? now, now) + amount / this.#perMs);
  }

  /** Milliseconds until the owner may take more. */
  waitMs(owner: string): number {
    return Math.max(0, (this.#paidAt.get(owner) ?? -Infinity) - AHEAD_MS - this.#clock.monotonic());
  }

  /** Resolves when the owner may take more, or when the signal aborts. */
  async ready(owner: string, signal?: AbortSignal): Promise<void> {
    const early = this.waitMs(owner);
    if (early > 0) await this.#clock.sleep(early, signal);
  }
}
