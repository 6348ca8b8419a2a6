import { isIPv6 } from 'node:net';
import { groupsOf } from './ip-network.ts';

/** A proxy may pass on any text as an address. */
const MAX_LENGTH = 64;
/** 16-bit groups of an IPv6 address: of the /64 that one customer has, and of the /48 that often has one owner. */
const GROUPS = { customer: 4, owner: 3 } as const;

/** An IPv4 address that a socket gives in the form of IPv6, as IPv4. */
export function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '').slice(0, MAX_LENGTH);
}

function firstGroups(address: string, count: number): string {
  return groupsOf(address).slice(0, count).join(':');
}

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a customer has all of it. */
export function clientNetwork(address = ''): string {
  const text = plainAddress(address);
  return isIPv6(text) ? `${firstGroups(text, GROUPS.customer)}::/64` : text;
}

/** The network of an address that often has one owner: the IPv6 /48, the IPv4 /24. */
export function ownerNetwork(address: string): string {
  const text = plainAddress(address);
  if (isIPv6(text)) return `${firstGroups(text, GROUPS.owner)}::/48`;
  return `${text.slice(0, Math.max(0, text.lastIndexOf('.')))}.0/24`;
}
