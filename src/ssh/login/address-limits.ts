import { isIPv6 } from 'node:net';
import type { Clock } from '../../lib/clock.ts';

export interface AddressLimits {
  /** New connections that one address may open at once, refilled at `perSecond`. */
  burst: number;
  perSecond: number;
  /** Logins that may fail before the address is refused, refilled over `failureWindowSeconds`. */
  failures: number;
  failureWindowSeconds: number;
  /** Connections of one address that have not logged in yet. */
  pending: number;
}

export const DEFAULT_ADDRESS_LIMITS: AddressLimits = {
  burst: 200,
  perSecond: 20,
  failures: 30,
  failureWindowSeconds: 300,
  pending: 64,
};

const MAX_ADDRESSES = 50_000;

interface Tally {
  connects: number;
  failures: number;
  pending: number;
  /** When it was last brought up to date, monotonic milliseconds. */
  at: number;
}

function isMapped(address: string): boolean {
  return address.startsWith('::ffff:');
}

/** The first 16-bit groups of an IPv6 address. */
function groupsOf(address: string, count: number): string {
  const [head = '', tail] = address.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  const groups = [...front, ...Array.from({ length: zeros }, () => '0'), ...back];
  return groups.slice(0, count).join(':');
}

/** What counts as one address. An IPv6 customer has a whole /64. */
export function limitKey(address: string): string {
  if (isMapped(address)) return address.slice(7);
  return isIPv6(address) ? `${groupsOf(address, 4)}::/64` : address;
}

/** The network of an address that often has one owner: the IPv6 /48, the IPv4 /24. */
export function networkOf(address: string): string {
  const key = limitKey(address);
  return isIPv6(address) && !isMapped(address)
    ? `${groupsOf(address, 3)}::/48`
    : `${key.slice(0, Math.max(0, key.lastIndexOf('.')))}.0/24`;
}

/** Leaky counters for each address. Beyond {@link MAX_ADDRESSES} the one that is idle longest is forgotten. */
export class AddressLimiter {
  readonly #limits: AddressLimits;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #tallies = new Map<string, Tally>();

  constructor(limits: AddressLimits, clock: Pick<Clock, 'monotonic'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Whether the address may connect now. Counts the attempt and, when it is admitted, one pending login. */
  admit(address: string): boolean {
    const tally = this.#tallyOf(address);
    const { burst, failures, pending } = this.#limits;
    if (tally.connects + 1 > burst || tally.failures >= failures || tally.pending >= pending) return false;
    tally.connects += 1;
    tally.pending += 1;
    return true;
  }

  /** A pending login of the address ended; a failure counts against the address. */
  ended(address: string, failed: boolean): void {
    const tally = this.#tallyOf(address);
    tally.pending = Math.max(0, tally.pending - 1);
    if (failed) tally.failures += 1;
  }

  #tallyOf(address: string): Tally {
    const key = limitKey(address);
    const now = this.#clock.monotonic();
    const tally = this.#tallies.get(key) ?? { connects: 0, failures: 0, pending: 0, at: now };
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
