/** What is known of which sizes fit: with one that fits every smaller one does, with one that does not no larger one. */
export class FittingSizes {
  #largestThatFits = Number.NEGATIVE_INFINITY;
  #smallestThatDoesNot = Number.POSITIVE_INFINITY;

  /** Undefined when it must be tried. */
  fits(size: number): boolean | undefined {
    if (size <= this.#largestThatFits) return true;
    return size >= this.#smallestThatDoesNot ? false : undefined;
  }

  note(size: number, fits: boolean): void {
    if (fits) this.#largestThatFits = Math.max(this.#largestThatFits, size);
    else this.#smallestThatDoesNot = Math.min(this.#smallestThatDoesNot, size);
  }
}
