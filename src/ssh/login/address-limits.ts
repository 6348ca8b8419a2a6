import { clientNetwork } from '../../lib/client-network.ts';
import type { Clock } from '../../lib/clock.ts';
import { Lru } from '../../lib/lru.ts';

/** At most `burst` at once, and `perSecond` in the long run. */
interface Leak {
  burst: number;
  perSecond: number;
}

/** A count that falls with time. */
class LeakyCount {
  readonly #leak: Leak;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #count = 0;
  #at: number;

  constructor(leak: Leak, clock: Pick<Clock, 'monotonic'>) {
    this.#leak = leak;
    this.#clock = clock;
    this.#at = clock.monotonic();
  }

  /** Counts one more, unless that is too many. */
  add(): boolean {
    const now = this.#clock.monotonic();
    this.#count = Math.max(0, this.#count - (Math.max(0, now - this.#at) / 1000) * this.#leak.perSecond);
    this.#at = now;
    if (this.#count + 1 > this.#leak.burst) return false;
    this.#count += 1;
    return true;
  }

  /** Takes one back. */
  remove(): void {
    this.#count = Math.max(0, this.#count - 1);
  }
}

export type LoginOutcome = 'logged in' | 'failed' | 'closed';

export interface AddressLimits {
  /** New connections that one address may open at once, refilled at `perSecond`. */
  burst: number;
  perSecond: number;
  /** Key exchanges of one address that did not lead to a login. */
  exchanges: Leak;
  /** The same of all addresses together from which nobody logged in yet. */
  allExchanges: Leak;
  /** Logins of one tenant, and key exchanges without one of the addresses from which it logs in. */
  logins: Leak;
  /** Logins that may fail before the address is refused, refilled over `failureWindowSeconds`. */
  failures: number;
  failureWindowSeconds: number;
  /** Connections of one address that have not logged in yet. */
  pending: number;
  /** The same for an address from which somebody logged in. */
  pendingOfKnown: number;
}

// A key exchange and all around it cost about 2 ms of one core. So one address costs 1 %, strangers 12 %, a tenant 4 %.
export const DEFAULT_ADDRESS_LIMITS: AddressLimits = {
  burst: 200,
  perSecond: 20,
  exchanges: { burst: 40, perSecond: 5 },
  allExchanges: { burst: 400, perSecond: 60 },
  logins: { burst: 200, perSecond: 20 },
  failures: 30,
  failureWindowSeconds: 300,
  pending: 16,
  pendingOfKnown: 64,
};

const MAX_ADDRESSES = 50_000;
/** Tenants whose logins are remembered. One that is forgotten begins anew. */
const MAX_TENANTS = 4096;

/** A key exchange that was admitted. */
export interface Exchange {
  /** The client showed that it is of a tenant, which pays for the exchange. False when the tenant logged in too often. */
  isOf(tenant: string): boolean;
}

interface Tally {
  connects: number;
  exchanges: LeakyCount;
  failures: number;
  pending: number;
  /** When it was last brought up to date, monotonic milliseconds. */
  at: number;
}

/** Leaky counters for each address. Beyond {@link MAX_ADDRESSES} the one that is idle longest is forgotten. */
export class AddressLimiter {
  readonly #limits: AddressLimits;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #tallies = new Map<string, Tally>();
  /** Addresses from which somebody logged in, with the tenant. Strangers cannot push them out. */
  readonly #known = new Lru<string, string>(MAX_ADDRESSES);
  readonly #ofStrangers: LeakyCount;
  readonly #ofTenants = new Lru<string, LeakyCount>(MAX_TENANTS);

  constructor(limits: AddressLimits, clock: Pick<Clock, 'monotonic'>) {
    this.#limits = limits;
    this.#clock = clock;
    this.#ofStrangers = new LeakyCount(limits.allExchanges, clock);
  }

  /** Whether the address may connect now. Counts the attempt and, when it is admitted, one pending login. */
  admit(address: string): boolean {
    const tally = this.#tallyOf(address);
    const { burst, failures, pending, pendingOfKnown } = this.#limits;
    const places = this.#known.get(clientNetwork(address)) === undefined ? pending : pendingOfKnown;
    if (tally.connects + 1 > burst || tally.failures >= failures || tally.pending >= places) return false;
    tally.connects += 1;
    tally.pending += 1;
    return true;
  }

  /**
   * Counts a key exchange of the address, which a login gives back. `crowded`: the address or all strangers had too many.
   * `hurried`: the tenant had that logs in from there.
   */
  exchange(address: string): Exchange | 'crowded' | 'hurried' {
    const { exchanges } = this.#tallyOf(address);
    const network = clientNetwork(address);
    const known = this.#known.get(network);
    let payer = known === undefined ? this.#ofStrangers : this.#ofTenant(known);
    if (!exchanges.add()) return 'crowded';
    if (!payer.add()) {
      exchanges.remove();
      return known === undefined ? 'crowded' : 'hurried';
    }
    return {
      isOf: (tenant) => {
        const next = this.#ofTenant(tenant);
        if (next !== payer) {
          if (!next.add()) return false;
          payer.remove();
          payer = next;
        }
        this.#known.set(network, tenant);
        return true;
      },
    };
  }

  /** A pending login of the address ended; a failure counts against the address. */
  ended(address: string, outcome: LoginOutcome): void {
    const tally = this.#tallyOf(address);
    tally.pending = Math.max(0, tally.pending - 1);
    if (outcome === 'failed') tally.failures += 1;
    if (outcome === 'logged in') tally.exchanges.remove();
  }

  #ofTenant(tenant: string): LeakyCount {
    const count = this.#ofTenants.get(tenant) ?? new LeakyCount(this.#limits.logins, this.#clock);
    this.#ofTenants.set(tenant, count);
    return count;
  }

  #tallyOf(address: string): Tally {
    const key = clientNetwork(address);
    const now = this.#clock.monotonic();
    const tally = this.#tallies.get(key) ?? {
      connects: 0,
      exchanges: new LeakyCount(this.#limits.exchanges, this.#clock),
      failures: 0,
      pending: 0,
      at: now,
    };
    const { perSecond, failures, failureWindowSeconds } = this.#limits;
    const seconds = Math.max(0, now - tally.at) / 1000;
    tally.connects = Math.max(0, tally.connects - seconds * perSecond);
    tally.failures = Math.max(0, tally.failures - (seconds * failures) / failureWindowSeconds);
    tally.at = now;
    this.#tallies.delete(key);
    this.#tallies.set(key, tally);
    const oldest = this.#tallies.keys().next();
    if (this.#tallies.size > MAX_ADDRESSES && oldest.done !== true) this.#tallies.delete(oldest.value);
    return tally;
  }
}
