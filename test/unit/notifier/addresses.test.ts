import { describe, expect, it } from 'vitest';
import { TargetRules } from '../../../src/notifier/addresses.ts';

const WAY = { protocol: 'https:', port: 443 };

const FORBIDDEN = [
  ['0.0.0.0', 'this network'],
  ['0.1.2.3', 'this network'],
  ['10.0.0.1', 'private'],
  ['10.96.0.1', 'Services of the cluster'],
  ['100.64.0.1', 'carrier-grade NAT'],
  ['100.127.255.255', 'carrier-grade NAT'],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['169.254.169.254', 'metadata of clouds'],
  ['169.254.0.1', 'link-local'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.0.0.192', 'metadata of a cloud'],
  ['192.0.2.1', 'documentation'],
  ['192.88.99.1', '6to4 relays'],
  ['192.168.0.1', 'private'],
  ['198.18.0.1', 'benchmarks'],
  ['198.19.255.255', 'benchmarks'],
  ['198.51.100.1', 'documentation'],
  ['203.0.113.1', 'documentation'],
  ['224.0.0.1', 'multicast'],
  ['239.255.255.250', 'multicast'],
  ['240.0.0.1', 'reserved'],
  ['255.255.255.255', 'broadcast'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::ffff:127.0.0.1', 'IPv4-mapped loopback'],
  ['::ffff:169.254.169.254', 'IPv4-mapped metadata'],
  ['::ffff:8.8.8.8', 'IPv4-mapped'],
  ['::ffff:7f00:1', 'IPv4-mapped loopback'],
  ['::127.0.0.1', 'IPv4-compatible'],
  ['64:ff9b::a00:1', 'NAT64 of 10.0.0.1'],
  ['64:ff9b:1::1', 'local NAT64'],
  ['100::1', 'discard'],
  ['2001::1', 'Teredo'],
  ['2001:db8::1', 'documentation'],
  ['2002:a00:1::1', '6to4 of 10.0.0.1'],
  ['3fff::1', 'documentation'],
  ['5f00::1', 'segment routing'],
  ['fc00::1', 'unique local'],
  ['fd00:ec2::254', 'metadata of a cloud'],
  ['fe80::1', 'link-local'],
  ['fec0::1', 'site-local'],
  ['ff02::1', 'multicast'],
] as const;

describe('the addresses that webhooks may lead to', () => {
  const rules = new TargetRules([]);

  it.each(FORBIDDEN)('are not %s (%s)', (address) => {
    expect(rules.allows(address, WAY)).toBe(false);
  });

  it.each(['8.8.8.8', '100.63.255.255', '100.128.0.1', '172.15.0.1', '172.32.0.1', '2606:4700::1', '2a00:1450::5'])(
    'are public ones such as %s, over https on port 443 alone',
    (address) => {
      expect(rules.allows(address, WAY)).toBe(true);
      expect(rules.allows(address, { protocol: 'http:', port: 443 })).toBe(false);
      expect(rules.allows(address, { protocol: 'https:', port: 8443 })).toBe(false);
      expect(rules.allows(address, { protocol: 'http:', port: 80 })).toBe(false);
    },
  );

  it.each(['', 'localhost', '127.1', '0x7f.0.0.1', '2130706433', 'example.com'])('are not the text "%s"', (text) => {
    expect(rules.allows(text, WAY)).toBe(false);
  });

  it('are all within the networks that the operator allows, and no more', () => {
    const mine = new TargetRules([
      { address: '10.20.0.0', prefix: 16, family: 'ipv4' },
      { address: 'fd12::', prefix: 32, family: 'ipv6' },
    ]);
    const http = { protocol: 'http:', port: 8080 };
    expect(['10.20.0.1', '10.20.255.255', 'fd12:0:1::1'].map((one) => mine.allows(one, http))).toEqual([
      true,
      true,
      true,
    ]);
    expect(['10.21.0.1', '127.0.0.1', 'fd13::1', '8.8.8.8'].map((one) => mine.allows(one, http))).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});
