import { BlockList, isIP } from 'node:net';

/** An IP network. */
export interface IpNetwork {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Reads a network such as 10.20.0.0/16 or fd00::/8; undefined when it is none. */
export function parseNetwork(text: string): IpNetwork | undefined {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = isIP(address);
  const prefix = Number(bits);
  const isNetwork =
    version !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && prefix <= (version === 4 ? 32 : 128);
  return isNetwork ? { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' } : undefined;
}

export function blockListOf(networks: Iterable<IpNetwork>): BlockList {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return list;
}
