import type { Charge } from '../../src/sink/columns.ts';
import type { Sink } from '../../src/sink/postgres.ts';

/** A sink that keeps the first of each charge, as the database does. */
export class MemorySink implements Sink {
  readonly charges = new Map<string, Charge>();
  readonly batches: number[] = [];
  last: number | undefined;

  completeAt(): Promise<number | undefined> {
    return Promise.resolve(this.last);
  }

  write(charges: readonly Charge[]): ReturnType<Sink['write']> {
    this.batches.push(charges.length);
    const before = this.charges.size;
    for (const charge of charges) {
      const { x_ChargeId: id } = charge.row;
      if (!this.charges.has(id)) this.charges.set(id, charge);
    }
    return Promise.resolve({ added: this.charges.size - before, stored: this.charges });
  }

  complete(at: number): Promise<void> {
    this.last = at;
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
