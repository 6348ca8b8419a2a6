import { isIPv6 } from 'node:net';

/** A proxy may pass on any text as an address. */
const MAX_LENGTH = 64;
/** 16-bit groups of an IPv6 address: of the /64 that one customer has, and of the /48 that often has one owner. */
const GROUPS = { customer: 4, owner: 3 } as const;

/** An IPv4 address that a socket gives in the form of IPv6, as IPv4. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '').slice(0, MAX_LENGTH);
}

function firstGroups(address: string, count: number): string {
  const [head = '', tail = ''] = address.split('::');
  const [front = [], back = []] = [head, tail].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => '0');
  return [...front, ...zeros, ...back].slice(0, count).join(':');
}

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a customer has all of it. */
export function clientNetwork(address = ''): string {
  const text = plain(address);
  return isIPv6(text) ? `${firstGroups(text, GROUPS.customer)}::/64` : text;
}

/** The network of an address that often has one owner: the IPv6 /48, the IPv4 /24. */
export function ownerNetwork(address: string): string {
  const text = plain(address);
  if (isIPv6(text)) return `${firstGroups(text, GROUPS.owner)}::/48`;
  return `${text.slice(0, Math.max(0, text.lastIndexOf('.')))}.0/24`;
}
