import { Shares } from './shares.ts';

/** What one tenant holds of bytes that all share. */
export interface Portion {
  /** Bytes that the tenant may hold more; negative when it already holds more than its part. */
  left(): number;
  /** Counts that many bytes more, or fewer. */
  change(bytes: number): void;
}

/**
 * Bytes that tenants share. Each may hold as much as all together leave free (Choudhury and Hahne, "Dynamic queue length
 * thresholds", 1998): a tenant alone gets half, n tenants get one part of n + 1 each, and there is always room for
 * another one.
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
