import { type BlockList, isIP } from 'node:net';
import { blockListOf, type IpNetwork } from '../lib/ip-network.ts';
import { isPublic } from '../lib/public-address.ts';

/** How a URL asks to connect. */
export interface Way {
  /** With its colon, as a URL has it. */
  protocol: string;
  port: number;
}

/** Where webhooks may lead: the internet over https on port 443, and any way into networks that the operator allows. */
export class TargetRules {
  readonly #allowed: BlockList;

  constructor(networks: readonly IpNetwork[]) {
    this.#allowed = blockListOf(networks);
  }

  /** Whether a connection to this address may be made. Anything but an IP address may not. */
  allows(address: string, { protocol, port }: Way): boolean {
    const version = isIP(address);
    if (version === 0) return false;
    if (this.#allowed.check(address, version === 4 ? 'ipv4' : 'ipv6')) return true;
    return protocol === 'https:' && port === 443 && isPublic(address);
  }
}
