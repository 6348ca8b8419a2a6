import { readFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

interface Peer {
  ipBlock?: { cidr: string; except?: string[] };
}

interface Policy {
  kind: string;
  spec: { egress: { ports?: { port: number }[]; to: Peer[] }[] };
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

function listOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = '', bits] = cidr.split('/');
    list.addSubnet(network, Number(bits), familyOf(network));
  }
  return list;
}

/** The networks that instances reach on every port, as the policy for tenants' namespaces says. */
const policy = parseAllDocuments(readFileSync(join(ROOT, 'deploy/tenant/tenant.yaml'), 'utf8'))
  .map((document) => document.toJS() as Policy)
  .find(({ kind }) => kind === 'NetworkPolicy');
const blocks = (policy?.spec.egress ?? [])
  .filter(({ ports }) => ports === undefined)
  .flatMap(({ to }) => to.flatMap(({ ipBlock }) => ipBlock ?? []))
  .map(({ cidr, except = [] }) => ({
    family: familyOf(cidr.split('/')[0] ?? ''),
    open: listOf([cidr]),
    closed: listOf(except),
  }));

function isOpen(address: string): boolean {
  const family = familyOf(address);
  // A list with `::/0` holds every IPv4 address too, as IPv6 writes it.
  const ofFamily = blocks.filter((block) => block.family === family);
  return ofFamily.some(({ open, closed }) => open.check(address, family) && !closed.check(address, family));
}

describe('an instance', () => {
  it.each(['1.1.1.1', '140.82.121.3', '168.63.129.15', '2606:4700::1111'])('reaches the internet: %s', (address) => {
    expect(isOpen(address)).toBe(true);
  });

  it.each([
    ['metadata of AWS, Google, Azure and OpenStack', '169.254.169.254'],
    ['credentials of Amazon ECS and EKS', '169.254.170.2'],
    ['metadata of AWS by IPv6', 'fd00:ec2::254'],
    ['the host of Azure, which answers for DHCP, health and extensions', '168.63.129.16'],
    ['metadata of Alibaba', '100.100.100.200'],
    ['metadata of Oracle, the older address', '192.0.0.192'],
    ['metadata behind NAT64', '64:ff9b::a9fe:a9fe'],
    ['a private address behind a NAT64 of the site', '64:ff9b:1::a00:1'],
    ['a private address behind 6to4', '2002:a00:1::1'],
    ['private networks', '10.96.0.1'],
    ['private networks', '172.31.255.254'],
    ['private networks', '192.168.0.1'],
    ['networks of carriers', '100.64.0.1'],
    ['networks for measurements, which some clusters use for pods', '198.18.0.1'],
    ['reserved networks, which some clouds use for pods', '240.0.0.1'],
    ['multicast', '224.0.0.251'],
    ['multicast', 'ff02::fb'],
    ['this host', '0.0.0.0'],
    ['the link', 'fe80::1'],
  ])('does not reach %s: %s', (_what, address) => {
    expect(isOpen(address)).toBe(false);
  });
});
