import { isIPv4 } from 'node:net';
import { blockListOf } from './ip-network.ts';

/** IPv4 networks that are not the internet (IANA IPv4 Special-Purpose Address Registry), and multicast. */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const;

/**
 * Parts of 2000::/3 that are no hosts of the internet (IANA IPv6 Special-Purpose Address Registry). Teredo and 6to4 hold
 * an IPv4 address, which may be a private one. All that is outside of 2000::/3 is refused: mapped addresses, NAT64,
 * unique local, link-local and multicast among it.
 */
const SPECIAL_IPV6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const;

const SPECIAL = blockListOf([
  ...SPECIAL_IPV4.map(([address, prefix]) => ({ address, prefix, family: 'ipv4' as const })),
  ...SPECIAL_IPV6.map(([address, prefix]) => ({ address, prefix, family: 'ipv6' as const })),
]);
const GLOBAL_IPV6 = blockListOf([{ address: '2000::', prefix: 3, family: 'ipv6' }]);

/** Whether an address is one of the internet. */
export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !SPECIAL.check(address, 'ipv4');
  return GLOBAL_IPV6.check(address, 'ipv6') && !SPECIAL.check(address, 'ipv6');
}
