import type { Clock } from '../lib/clock.ts';

/**
 * The times by which the records of a leader sort, milliseconds since the epoch: its clock's, but none is before `floor`
 * or before an earlier one. Where the clock is behind, they run ahead of it by a constant, so that their order is kept.
 */
export class RecordTimes {
  readonly #clock: Pick<Clock, 'now'>;
  #last: number;
  #ahead = 0;

  /** @param floor no record of an earlier leader has a later time */
  constructor(clock: Pick<Clock, 'now'>, floor: number) {
    this.#clock = clock;
    this.#last = floor;
  }

  now(): number {
    const now = this.#clock.now();
    this.#ahead = Math.max(this.#ahead, this.#last - now);
    this.#last = now + this.#ahead;
    return this.#last;
  }
}
