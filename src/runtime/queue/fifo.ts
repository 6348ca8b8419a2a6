/** First in, first out; both ends in constant time, which an array's `shift` does not promise. */
export class Fifo<T> {
  #incoming: T[] = [];
  #outgoing: T[] = [];

  push(value: T): void {
    this.#incoming.push(value);
  }

  shift(): T | undefined {
    if (this.#outgoing.length === 0) {
      this.#outgoing = this.#incoming.toReversed();
      this.#incoming = [];
    }
    return this.#outgoing.pop();
  }
}
