import type { Result } from './pool.ts';

/** What some worlds came to, and how fast. */
export class Tally {
  readonly #began = performance.now();
  #worlds = 0;
  #failed = 0;
  #rentals = 0;
  #starts = 0;
  #elapsed = 0;

  add({ rentals, starts, elapsed, found }: Result): void {
    this.#worlds += 1;
    this.#rentals += rentals;
    this.#starts += starts;
    this.#elapsed += elapsed;
    if (found !== undefined) this.#failed += 1;
  }

  get failed(): number {
    return this.#failed;
  }

  get text(): string {
    const seconds = (performance.now() - this.#began) / 1000;
    const rate = (this.#rentals / seconds).toFixed(1);
    const times = (this.#elapsed / 1000 / seconds).toFixed(0);
    const did = `${this.#worlds} worlds, ${this.#failed} failed, ${this.#rentals} rentals, ${this.#starts} starts`;
    return `${did} in ${seconds.toFixed(1)} s: ${rate} rentals/s, ${times} times real time`;
  }
}
