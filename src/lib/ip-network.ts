import { BlockList, isIP, isIPv4 } from 'node:net';

/** An IP network. */
export interface IpNetwork {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Reads a network such as 10.20.0.0/16 or fd00::/8; undefined when it is none. */
export function parseNetwork(text: string): IpNetwork | undefined {
  const [address = '', bits = '', ...rest] = text.split('/', 3);
  const version = isIP(address);
  const prefix = Number(bits);
  const isNetwork =
    version !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && prefix <= (version === 4 ? 32 : 128);
  return isNetwork ? { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' } : undefined;
}

/** The number of an IPv4 address. */
export function numberOf4(address: string): bigint {
  return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
}

/** The eight groups of an IPv6 address, in hexadecimal. Its last four bytes may be written as an IPv4 address. */
export function groupsOf(address: string): string[] {
  const at = address.lastIndexOf(':') + 1;
  const low = isIPv4(address.slice(at)) ? numberOf4(address.slice(at)) : undefined;
  const text =
    low === undefined ? address : `${address.slice(0, at)}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [head = '', tail = ''] = text.split('::');
  const [front = [], back = []] = [head, tail].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => '0');
  return [...front, ...zeros, ...back];
}

/** Where NAT64 leads IPv6 to IPv4: everywhere (RFC 6052), and within one site (RFC 8215). The last four bytes say where to. */
const NAT64 = ['64:ff9b::', '64:ff9b:1::'] as const;

/** The addresses of IPv6 behind which NAT64 has an IPv4 address. */
export function behindNat64(address: string): string[] {
  const number = numberOf4(address);
  const [high, low] = [number >> 16n, number & 0xffffn];
  return NAT64.map((prefix) => `${prefix}${high.toString(16)}:${low.toString(16)}`);
}

/** The IPv4 address to which NAT64 leads from one of IPv6; undefined for any other. */
export function throughNat64(address: string): string | undefined {
  const groups = groupsOf(address).map((group) => Number.parseInt(group, 16));
  const [first, second, third = 0] = groups;
  if (
    first !== 0x64 ||
    second !== 0xff9b ||
    third > 1 ||
    (third === 0 && groups.slice(3, 6).some((group) => group !== 0))
  )
    return undefined;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}

export function blockListOf(networks: Iterable<IpNetwork>): BlockList {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return list;
}
