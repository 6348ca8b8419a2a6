import { isIP } from 'node:net';
import { groupsOf, numberOf4, parseNetwork } from './ip-network.ts';

/** Addresses of one family, from the first to the last. */
export interface IpRange {
  family: 4 | 6;
  first: bigint;
  last: bigint;
}

const BITS = { 4: 32, 6: 128 } as const;

function numberOf6(address: string): bigint {
  return groupsOf(address).reduce((sum, group) => sum * 0x1_00_00n + BigInt(`0x${group}`), 0n);
}

/** What ::ffff:0:0/96 begins with: IPv4 in the words of IPv6. */
const MAPPED = 0xffffn;

/** The addresses of a network such as 10.20.0.0/16, or the one of an address; undefined when the text is neither. */
export function rangeOf(text: string): IpRange | undefined {
  const family = isIP(text.split('/', 1)[0] ?? '');
  const network = parseNetwork(text.includes('/') ? text : `${text}/${family === 4 ? 32 : 128}`);
  if (network === undefined || (family !== 4 && family !== 6) || network.address.includes('%')) return undefined;
  const size = 1n << BigInt(BITS[family] - network.prefix);
  const address = family === 4 ? numberOf4(network.address) : numberOf6(network.address);
  const first = address - (address % size);
  if (family === 6 && first >> 32n === MAPPED && network.prefix >= 96) {
    const low = first & 0xffff_ffffn;
    return { family: 4, first: low, last: low + size - 1n };
  }
  return { family, first, last: first + size - 1n };
}

/** The addresses of both ranges; undefined when there are none. */
export function common(one: IpRange, other: IpRange): IpRange | undefined {
  if (one.family !== other.family) return undefined;
  const first = one.first > other.first ? one.first : other.first;
  const last = one.last < other.last ? one.last : other.last;
  return first > last ? undefined : { family: one.family, first, last };
}

/** Whether these ranges together have every address of a range. */
export function isCovered(range: IpRange, by: readonly IpRange[]): boolean {
  const parts = by.map((one) => common(range, one)).filter((one) => one !== undefined);
  let next = range.first;
  for (const { first, last } of parts.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    if (first > next) return false;
    if (last >= next) next = last + 1n;
  }
  return next > range.last;
}
