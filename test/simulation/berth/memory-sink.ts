import type { Charge } from '../../../src/sink/columns.ts';
import type { Sink, Stored } from '../../../src/sink/postgres.ts';

interface Row extends Stored {
  id: string;
  /** Of the instance; empty for others. */
  uid: string;
}

/** A database of bills outside of the cluster: as that of PostgreSQL it changes no row that is there. */
export class MemorySink implements Sink {
  readonly #rows = new Map<string, Row>();
  #completeAt: number | undefined;

  completeAt(): Promise<number | undefined> {
    return Promise.resolve(this.#completeAt);
  }

  write(charges: readonly Charge[]): Promise<{ added: number; stored: ReadonlyMap<string, Stored> }> {
    let added = 0;
    const stored = new Map<string, Stored>();
    for (const { row, currency, cost } of charges) {
      const id = row.x_ChargeId;
      const known = this.#rows.get(id);
      const uid = typeof row.ResourceId === 'string' ? row.ResourceId : '';
      const one = known ?? { id, uid, currency, cost };
      if (known === undefined) added += 1;
      this.#rows.set(id, one);
      stored.set(id, one);
    }
    return Promise.resolve({ added, stored });
  }

  complete(at: number): Promise<void> {
    this.#completeAt = Math.max(this.#completeAt ?? 0, at);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** What it has, in the currency. */
  charges(): { id: string; uid: string; cost: number }[] {
    return [...this.#rows.values()].map(({ id, uid, cost }) => ({ id, uid, cost: Number(cost) / 1_000_000 }));
  }
}
