import type { Clock } from '../../lib/clock.ts';

/** At most `burst` at once, and `perSecond` in the long run. */
export interface Leak {
  burst: number;
  perSecond: number;
}

/** A count that falls with time. */
export class LeakyCount {
  readonly #leak: Leak;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #count = 0;
  #at: number;

  constructor(leak: Leak, clock: Pick<Clock, 'monotonic'>) {
    this.#leak = leak;
    this.#clock = clock;
    this.#at = clock.monotonic();
  }

  /** Counts one more, unless that is too many. */
  add(): boolean {
    const now = this.#clock.monotonic();
    this.#count = Math.max(0, this.#count - (Math.max(0, now - this.#at) / 1000) * this.#leak.perSecond);
    this.#at = now;
    if (this.#count + 1 > this.#leak.burst) return false;
    this.#count += 1;
    return true;
  }

  /** Takes one back. */
  remove(): void {
    this.#count = Math.max(0, this.#count - 1);
  }
}
