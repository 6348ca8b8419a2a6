import { FairShares } from '../../lib/shares.ts';
import { PRIORITIES, type Priority } from '../../resources/api-key.ts';

/** A whole team of agents may come at once. Alone a tenant gets a quarter. */
const CALLS_OF_TENANT = 256;
const CALLS = 1024;
const CALLS_FACTOR = 1 / 3;
const MIB = 2 ** 20;
/** A quarter of what all request bodies may hold: models that are ready have the rest. Alone a tenant gets half. */
const BYTES = 128 * MIB;
const BYTES_OF_TENANT = 64 * MIB;
const BYTES_FACTOR = 1;

/** What a call that waits holds. */
export interface WaitingPlace {
  readonly tenant: string;
  readonly priority: Priority;
  readonly bytes: number;
  /** Ends the wait, because a call of higher priority has the place. */
  readonly displace: () => void;
}

/**
 * Bounds the calls that wait: so many of one tenant and of all, and so many bytes. A newcomer finds room, and a call gets
 * the place of one of lower priority of its tenant, the youngest of the lowest.
 */
export class WaitingPlaces {
  readonly #calls = new FairShares(CALLS, CALLS_FACTOR);
  readonly #bytes = new FairShares(BYTES, BYTES_FACTOR);
  /** Those of each tenant, in the order in which they came. */
  readonly #held = new Map<string, Set<WaitingPlace>>();

  /** Returns what fills all places, in words, when there is none. */
  take(place: WaitingPlace): string | undefined {
    const full = this.#takeFree(place);
    if (full !== undefined && !this.#takeOver(place)) return full;
    const held = this.#held.get(place.tenant);
    if (held === undefined) this.#held.set(place.tenant, new Set([place]));
    else held.add(place);
    return undefined;
  }

  /** Does nothing for a place that another call has by now. */
  give(place: WaitingPlace): void {
    const { tenant, bytes } = place;
    if (!this.#remove(place)) return;
    this.#calls.give(tenant, 1);
    this.#bytes.give(tenant, bytes);
  }

  #takeFree({ tenant, bytes }: WaitingPlace): string | undefined {
    const calls = this.#calls.take(tenant, 1, CALLS_OF_TENANT);
    if (calls !== 'taken')
      return calls === 'owner-full' ? `${CALLS_OF_TENANT} calls of your namespace` : `${CALLS} calls`;
    const held = this.#bytes.take(tenant, bytes, BYTES_OF_TENANT);
    if (held === 'taken') return undefined;
    this.#calls.give(tenant, 1);
    return held === 'owner-full' ? `${BYTES_OF_TENANT / MIB} MiB of your namespace` : `${BYTES / MIB} MiB of calls`;
  }

  /** What others of the tenant hold stays with the tenant, so no more is asked for than the bytes that they lack. */
  #takeOver({ tenant, priority, bytes }: WaitingPlace): boolean {
    const lower = [...(this.#held.get(tenant) ?? [])]
      .filter((other) => rank(other.priority) < rank(priority))
      .toReversed()
      .toSorted((a, b) => rank(a.priority) - rank(b.priority));
    let freed = 0;
    for (const [index, other] of lower.entries()) {
      freed += other.bytes;
      if (freed < bytes && this.#bytes.take(tenant, bytes - freed, BYTES_OF_TENANT) !== 'taken') continue;
      if (freed > bytes) this.#bytes.give(tenant, freed - bytes);
      this.#calls.give(tenant, index);
      for (const displaced of lower.slice(0, index + 1)) {
        this.#remove(displaced);
        displaced.displace();
      }
      return true;
    }
    return false;
  }

  #remove(place: WaitingPlace): boolean {
    const held = this.#held.get(place.tenant);
    const wasHeld = held?.delete(place) ?? false;
    if (held?.size === 0) this.#held.delete(place.tenant);
    return wasHeld;
  }
}

function rank(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}
