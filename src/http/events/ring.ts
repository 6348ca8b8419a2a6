/** The last entries of a log, at most `capacity`; older ones are forgotten. */
export interface Ring<T> {
  push(entry: T): void;
  /** Oldest first. */
  entries(): readonly T[];
  /** The last entry that was forgotten. */
  readonly forgotten: T | undefined;
}

/** @param capacity entries */
export function createRing<T>(capacity: number): Ring<T> {
  let kept: T[] = [];
  let forgotten: T | undefined;
  return {
    push(entry) {
      kept.push(entry);
      if (kept.length < 2 * capacity) return;
      // Half at a time, so that a push costs the same in the long run.
      forgotten = kept[capacity - 1];
      kept = kept.slice(capacity);
    },
    entries: () => kept,
    get forgotten() {
      return forgotten;
    },
  };
}
