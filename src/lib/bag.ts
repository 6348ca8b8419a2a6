/**
 * Things that come and go all the time, without an order. A Set of them would keep what has gone in memory for long: V8
 * gives a Set a new table every few additions, each old table points to the next and holds what was in it then, and once
 * one of them is in the old generation, every later one survives until the next full collection.
 */
export class Bag<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    this.#items.push(item);
  }

  /** Does nothing when the item is not there. Takes longer the more items there are: 1 µs for a thousand. */
  delete(item: T): void {
    const index = this.#items.indexOf(item);
    if (index === -1) return;
    const last = this.#items.pop() as T;
    if (last !== item) this.#items[index] = last;
  }

  /** What was there when the iteration began. */
  [Symbol.iterator](): ArrayIterator<T> {
    return [...this.#items].values();
  }
}
