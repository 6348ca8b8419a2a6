import { type BlockList, isIP } from 'node:net';
import { blockListOf, type IpNetwork, parseNetwork, throughNat64 } from './ip-network.ts';

/**
 * What is no server outside, whoever names it: this machine, its link, where clouds have their metadata and credentials,
 * and addresses of many.
 */
const INNER: BlockList = blockListOf(
  [
    '0.0.0.0/8',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '224.0.0.0/4',
    '240.0.0.0/4',
    // Alibaba Cloud and Azure.
    '100.100.100.200/32',
    '168.63.129.16/32',
    '::/127',
    'fe80::/10',
    'ff00::/8',
    // Amazon EC2 and Google Cloud.
    'fd00:ec2::/32',
    'fd20:ce::254/128',
  ].flatMap((text): readonly IpNetwork[] => [parseNetwork(text)].filter((network) => network !== undefined)),
);

/**
 * Whether an address is of this machine, its link or a metadata service, by NAT64 as well. Also what is no address at
 * all.
 */
export function isInner(address: string): boolean {
  const version = isIP(address);
  const behind = version === 6 ? throughNat64(address) : undefined;
  if (behind !== undefined) return isInner(behind);
  return version === 0 || INNER.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
