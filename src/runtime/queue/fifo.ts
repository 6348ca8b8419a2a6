/** First in, first out; both ends in constant time, which an array's `shift` does not promise. */
export interface Fifo<T> {
  push(value: T): void;
  shift(): T | undefined;
}

export function createFifo<T>(): Fifo<T> {
  let incoming: T[] = [];
  let outgoing: T[] = [];
  return {
    push(value) {
      incoming.push(value);
    },
    shift() {
      if (outgoing.length === 0) {
        outgoing = incoming.toReversed();
        incoming = [];
      }
      return outgoing.pop();
    },
  };
}
