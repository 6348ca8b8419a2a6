import { Shares } from './shares.ts';

/**
 * Shares of which something is always left for an owner who holds nothing yet: an owner may hold at most `factor` times
 * what is free. So one greedy owner leaves most / (1 + factor) free, and n of them leave most / (1 + n * factor)
 * (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
 */
export class FairShares {
  readonly #shares: Shares;
  readonly #most: number;
  readonly #factor: number;

  /** @param most bound of all owners together */
  constructor(most: number, factor: number) {
    this.#shares = new Shares(most);
    this.#most = most;
    this.#factor = factor;
  }

  get total(): number {
    return this.#shares.total;
  }

  /** As `Shares.take`; `all-full` also when the rest is kept for others. */
  take(owner: string, amount: number, most = Infinity): 'taken' | 'owner-full' | 'all-full' {
    const held = this.#shares.heldBy(owner) + amount;
    if (held > most) return 'owner-full';
    if (held > this.#factor * (this.#most - this.total)) return 'all-full';
    return this.#shares.take(owner, amount, most);
  }

  give(owner: string, amount: number): void {
    this.#shares.give(owner, amount);
  }
}
