export interface RingBounds<T> {
  /** What one entry weighs, and the most that all may weigh; the last entry stays in any case. */
  weigh: (entry: T) => number;
  most: number;
}

/**
 * The last entries of a log, at least `capacity` of them once so many came, or fewer when they weigh too much; older
 * ones are forgotten.
 */
export class Ring<T> {
  readonly #capacity: number;
  #entries: T[] = [];
  #forgotten: T | undefined;
  readonly #bounds: RingBounds<T>;
  #weight = 0;

  constructor(capacity: number, bounds: RingBounds<T> = { weigh: () => 0, most: 0 }) {
    this.#capacity = capacity;
    this.#bounds = bounds;
  }

  push(entry: T): void {
    this.#entries.push(entry);
    this.#weight += this.#bounds.weigh(entry);
    // Half of them at once: a push takes constant time on average.
    if (this.#entries.length >= 2 * this.#capacity) this.#forget(this.#capacity);
    while (this.#weight > this.#bounds.most && this.#entries.length > 1) {
      this.#forget(Math.ceil((this.#entries.length - 1) / 2));
    }
  }

  #forget(count: number): void {
    const old = this.#entries.slice(0, count);
    this.#forgotten = old.at(-1);
    this.#entries = this.#entries.slice(count);
    this.#weight -= old.reduce((total, entry) => total + this.#bounds.weigh(entry), 0);
  }

  /** Oldest first. */
  entries(): readonly T[] {
    return this.#entries;
  }

  /** The last entry that was forgotten. */
  get forgotten(): T | undefined {
    return this.#forgotten;
  }
}
