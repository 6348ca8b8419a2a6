import { hasReached } from '../../kube/watch/resource-version.ts';

/** Writes that are told apart. Those beyond count as one, which a count must have in full. */
const MOST_WRITES = 8;

/** Bills of this process in one month, as far as the count of the controller may lack them. */
export class UncountedBills {
  /** No record has them yet. */
  #unrecorded = 0n;
  /** Records have them, since this version. */
  #recorded: { version: string; cost: bigint }[] = [];

  add(cost: bigint): void {
    this.#unrecorded += cost;
  }

  /** No record will have them. */
  drop(cost: bigint): void {
    this.#unrecorded -= cost;
  }

  noteRecorded(cost: bigint, version: string): void {
    this.#unrecorded -= cost;
    this.#recorded.push({ version, cost });
    const [first, second, ...others] = this.#recorded;
    if (first === undefined || second === undefined || this.#recorded.length <= MOST_WRITES) return;
    const later = hasReached(first.version, second.version) ? first.version : second.version;
    this.#recorded = [{ version: later, cost: first.cost + second.cost }, ...others];
  }

  /** What a count lacks that has every record up to this version; undefined for a count that has none. */
  beyond(version: string | undefined): bigint {
    if (version !== undefined) this.#recorded = this.#recorded.filter((one) => !hasReached(version, one.version));
    return this.#recorded.reduce((sum, { cost }) => sum + cost, this.#unrecorded);
  }
}

/**
 * What this process knows of one budget in one currency before the controller counts it. Amounts are millionths of a
 * millionth of the currency.
 */
export class BudgetAccount {
  /** Whose budget it is, in which currency. */
  readonly name: string;
  /** Calls under way that are held against the budget, and what they may cost together. */
  calls = 0;
  held = 0n;
  readonly #months = new Map<string, UncountedBills>();

  constructor(name: string) {
    this.name = name;
  }

  billsOf(month: string): UncountedBills {
    let bills = this.#months.get(month);
    if (bills === undefined) this.#months.set(month, (bills = new UncountedBills()));
    return bills;
  }

  /** No call is under way, and no month has a bill. */
  get isUnused(): boolean {
    return this.calls === 0 && this.#months.size === 0;
  }

  /** Forgets the bills of other months. */
  keepMonth(month: string): void {
    for (const other of this.#months.keys()) if (other !== month) this.#months.delete(other);
  }
}
