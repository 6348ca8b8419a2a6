/** The last entries of a log, at least `capacity` of them once so many came; older ones are forgotten. */
export class Ring<T> {
  readonly #capacity: number;
  #entries: T[] = [];
  #forgotten: T | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(entry: T): void {
    this.#entries.push(entry);
    if (this.#entries.length < 2 * this.#capacity) return;
    // Half of them at once: a push takes constant time on average.
    this.#forgotten = this.#entries[this.#capacity - 1];
    this.#entries = this.#entries.slice(this.#capacity);
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
