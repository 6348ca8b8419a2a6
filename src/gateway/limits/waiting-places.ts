import { FairShares } from '../../lib/shares.ts';

/** A whole team of agents may come at once. Alone a tenant gets a quarter. */
const CALLS_OF_TENANT = 256;
const CALLS = 1024;
const CALLS_FACTOR = 1 / 3;
const MIB = 2 ** 20;
/** A quarter of what all request bodies may hold: models that are ready have the rest. Alone a tenant gets half. */
const BYTES = 128 * MIB;
const BYTES_OF_TENANT = 64 * MIB;
const BYTES_FACTOR = 1;

/** Bounds the calls that wait: so many of one tenant and of all, and so many bytes. A newcomer finds room. */
export class WaitingPlaces {
  readonly #calls = new FairShares(CALLS, CALLS_FACTOR);
  readonly #bytes = new FairShares(BYTES, BYTES_FACTOR);

  /** Takes a place. Returns what fills all of them, in words, when there is none. */
  take(tenant: string, bytes: number): string | undefined {
    const calls = this.#calls.take(tenant, 1, CALLS_OF_TENANT);
    if (calls !== 'taken')
      return calls === 'owner-full' ? `${CALLS_OF_TENANT} calls of your namespace` : `${CALLS} calls`;
    const held = this.#bytes.take(tenant, bytes, BYTES_OF_TENANT);
    if (held === 'taken') return undefined;
    this.#calls.give(tenant, 1);
    return held === 'owner-full' ? `${BYTES_OF_TENANT / MIB} MiB of your namespace` : `${BYTES / MIB} MiB of calls`;
  }

  give(tenant: string, bytes: number): void {
    this.#calls.give(tenant, 1);
    this.#bytes.give(tenant, bytes);
  }
}
