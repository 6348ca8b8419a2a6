import { isIPv6 } from 'node:net';

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
  at: number;
}

export interface AddressGate {
  /** Whether the address may connect now; counts the attempt and, when admitted, one pending login. */
  admit(address: string): boolean;
  /** The pending login ended; a failure counts against the address. */
  settle(address: string, failed: boolean): void;
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

/** One IPv6 customer has a /64: its addresses count as one. */
export function limitKey(address: string): string {
  if (isMapped(address)) return address.slice(7);
  return isIPv6(address) ? `${groupsOf(address, 4)}::/64` : address;
}

/** What one owner often has many addresses of: the IPv6 /48, the IPv4 /24. */
export function networkOf(address: string): string {
  const key = limitKey(address);
  return isIPv6(address) && !isMapped(address)
    ? `${groupsOf(address, 3)}::/48`
    : `${key.slice(0, Math.max(0, key.lastIndexOf('.')))}.0/24`;
}

/** Leaky counters per address, at most {@link MAX_ADDRESSES}; the one idle longest is forgotten first. */
export function addressGate(limits: AddressLimits, now: () => number): AddressGate {
  const tallies = new Map<string, Tally>();
  const tallyOf = (address: string): Tally => {
    const key = limitKey(address);
    const tally = tallies.get(key) ?? { connects: 0, failures: 0, pending: 0, at: now() };
    const seconds = Math.max(0, now() - tally.at) / 1000;
    tally.connects = Math.max(0, tally.connects - seconds * limits.perSecond);
    tally.failures = Math.max(0, tally.failures - (seconds * limits.failures) / limits.failureWindowSeconds);
    tally.at = now();
    tallies.delete(key);
    tallies.set(key, tally);
    if (tallies.size > MAX_ADDRESSES) {
      const oldest = tallies.keys().next().value;
      if (oldest !== undefined) tallies.delete(oldest);
    }
    return tally;
  };
  return {
    admit: (address) => {
      const tally = tallyOf(address);
      if (tally.connects + 1 > limits.burst || tally.failures >= limits.failures) return false;
      if (tally.pending >= limits.pending) return false;
      tally.connects += 1;
      tally.pending += 1;
      return true;
    },
    settle: (address, failed) => {
      const tally = tallyOf(address);
      tally.pending = Math.max(0, tally.pending - 1);
      if (failed) tally.failures += 1;
    },
  };
}
