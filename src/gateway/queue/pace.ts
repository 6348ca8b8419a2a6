import type { Clock } from '../../lib/clock.ts';

/** How long it takes until what happened is half forgotten. */
const HALF_MS = 20_000;

/** How often something happens, as the last half minute was. */
export class Pace {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #events = 0;
  #ms = 0;
  #at: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#at = clock.monotonic();
  }

  happened(): void {
    const passed = this.#clock.monotonic() - this.#at;
    const kept = 2 ** (-passed / HALF_MS);
    this.#events = this.#events * kept + 1;
    this.#ms = this.#ms * kept + passed;
    this.#at += passed;
  }

  /** Milliseconds from one to the next; undefined before the first. */
  get everyMs(): number | undefined {
    if (this.#events === 0) return undefined;
    return (this.#ms + this.#clock.monotonic() - this.#at) / this.#events;
  }
}
