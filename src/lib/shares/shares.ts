/** Amounts that are held at once: a bound for each owner, and one for all together. An owner who holds nothing costs nothing. */
export class Shares {
  readonly #most: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** @param most bound of all owners together */
  constructor(most: number) {
    this.#most = most;
  }

  get total(): number {
    return this.#total;
  }

  heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0;
  }

  /** Holds `amount` more for the owner, if that keeps within its own bound `most` and within that of all. */
  take(owner: string, amount: number, most: number): 'taken' | 'owner-full' | 'all-full' {
    const held = this.heldBy(owner) + amount;
    if (held > most) return 'owner-full';
    if (this.#total + amount > this.#most) return 'all-full';
    this.#held.set(owner, held);
    this.#total += amount;
    return 'taken';
  }

  /** Gives back what `take` held. */
  give(owner: string, amount: number): void {
    const held = this.heldBy(owner) - amount;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
    this.#total -= amount;
  }
}
