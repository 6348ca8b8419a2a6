import { compareText } from '../lib/compare.ts';
import type { Charge } from './columns.ts';
import type { Stored } from './postgres.ts';

/** A count of charges, and what they cost in millionths. */
export interface Sum {
  count: number;
  cost: bigint;
}

/** What one month comes to in one currency: by the records that were read, and by the rows that the sink has for them. */
export interface TallyLine {
  month: string;
  currency: string;
  cluster: Sum;
  sink: Sum;
}

/** How many of something there were, and the name of the first. */
export interface Fault {
  count: number;
  first: string;
}

function faulted(before: Fault | undefined, name: string): Fault {
  return before === undefined ? { count: 1, first: name } : { ...before, count: before.count + 1 };
}

/** Compares what the cluster has with what the sink has. It keeps sums, and no charge. */
export class Tally {
  added = 0;
  /** Charges that the sink has at another cost. */
  differing: Fault | undefined;
  /** Records whose amounts or times cannot be read. */
  unreadable: Fault | undefined;
  readonly #lines = new Map<string, TallyLine>();

  add({ row, month, currency, cost }: Charge, stored: Stored | undefined): void {
    const key = `${month} ${currency}`;
    const line = this.#lines.get(key) ?? {
      month,
      currency,
      cluster: { count: 0, cost: 0n },
      sink: { count: 0, cost: 0n },
    };
    this.#lines.set(key, line);
    line.cluster.count += 1;
    line.cluster.cost += cost;
    if (stored === undefined) return;
    if (stored.currency !== currency || stored.cost !== cost) this.differing = faulted(this.differing, row.x_ChargeId);
    if (stored.currency !== currency) return;
    line.sink.count += 1;
    line.sink.cost += stored.cost;
  }

  addUnreadable(name: string): void {
    this.unreadable = faulted(this.unreadable, name);
  }

  /** By month and currency. */
  lines(): TallyLine[] {
    return [...this.#lines.values()].toSorted(
      (a, b) => compareText(a.month, b.month) || compareText(a.currency, b.currency),
    );
  }

  /** Whether the sink has all that was read, at the same cost. */
  isSound(): boolean {
    const isEqual = this.lines().every(
      ({ cluster, sink }) => cluster.count === sink.count && cluster.cost === sink.cost,
    );
    return isEqual && this.differing === undefined && this.unreadable === undefined;
  }
}
