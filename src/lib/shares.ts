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
    this.add(owner, amount);
    return 'taken';
  }

  /** Holds `amount` more for the owner, whatever the bounds say: it is there already. */
  add(owner: string, amount: number): void {
    this.#held.set(owner, this.heldBy(owner) + amount);
    this.#total += amount;
  }

  /** Gives back what `take` held. */
  give(owner: string, amount: number): void {
    const held = this.heldBy(owner) - amount;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
    this.#total -= amount;
  }
}

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

  /** As `Shares.add`. */
  add(owner: string, amount: number): void {
    this.#shares.add(owner, amount);
  }

  heldBy(owner: string): number {
    return this.#shares.heldBy(owner);
  }

  give(owner: string, amount: number): void {
    this.#shares.give(owner, amount);
  }
}

/**
 * Takes a place for each item as long as there is one: the owner who holds the fewest goes first, then the order of the
 * items counts. Returns those that have a place.
 */
export function takePlaces<T>(shares: FairShares, items: readonly T[], ownerOf: (item: T) => string): T[] {
  const lines = Map.groupBy(items, ownerOf);
  const taken: T[] = [];
  while (lines.size > 0) {
    const [[owner, line] = ['', []]] = [...lines].toSorted(([a], [b]) => shares.heldBy(a) - shares.heldBy(b));
    const [item, ...rest] = line;
    // Whoever holds more gets none either.
    if (item === undefined || shares.take(owner, 1) !== 'taken') break;
    taken.push(item);
    if (rest.length === 0) lines.delete(owner);
    else lines.set(owner, rest);
  }
  return taken;
}

/** At most so many of the items: all of the owners who have few, and of the others one as many as of another. */
export function divideEvenly<T>(items: readonly T[], ownerOf: (item: T) => string, most: number): T[] {
  const groups = [...Map.groupBy(items, ownerOf).values()].toSorted((a, b) => a.length - b.length);
  let left = most;
  return groups.flatMap((group, index) => {
    const part = group.slice(0, Math.floor(left / (groups.length - index)));
    left -= part.length;
    return part;
  });
}

/** What one tenant holds of bytes that all share. */
export interface Portion {
  /** Bytes that the tenant may hold more; negative when it already holds more than its part. */
  left(): number;
  /** Counts that many bytes more, or fewer. */
  change(bytes: number): void;
}

/**
 * Bytes that tenants share. Each may hold as much as all together leave free, as with {@link FairShares}: a tenant alone
 * gets half, n tenants get one part of n + 1 each, and there is always room for another one.
 */
export class FairBytes {
  readonly #limit: number;
  readonly #held = new Shares(Number.POSITIVE_INFINITY);

  constructor(limit: number) {
    this.#limit = limit;
  }

  of(tenant: string): Portion {
    return {
      // What is taken is both more held and less free.
      left: () => Math.floor((this.#limit - this.#held.total - this.#held.heldBy(tenant)) / 2),
      change: (bytes) => {
        if (bytes >= 0) this.#held.take(tenant, bytes, Number.POSITIVE_INFINITY);
        else this.#held.give(tenant, -bytes);
      },
    };
  }
}
