import { isIPv6 } from 'node:net';

/** A proxy may pass on any text as an address. */
const MAX_LENGTH = 64;
const GROUPS_OF_A_CUSTOMER = 4;

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a customer has all of it. */
export function clientNetwork(address = ''): string {
  const text = address.replace(/^::ffff:(?=\d+\.)/i, '').slice(0, MAX_LENGTH);
  if (!isIPv6(text)) return text;
  const [head = '', tail = ''] = text.split('::');
  const [front, back] = [head, tail].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: Math.max(0, 8 - (front?.length ?? 0) - (back?.length ?? 0)) }, () => '0');
  const groups = [...(front ?? []), ...zeros, ...(back ?? [])].slice(0, GROUPS_OF_A_CUSTOMER);
  return `${groups.join(':')}::/64`;
}
