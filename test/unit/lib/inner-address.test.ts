import { expect, it } from 'vitest';
import { isInner } from '../../../src/lib/inner-address.ts';
import { behindNat64, throughNat64 } from '../../../src/lib/ip-network.ts';

it.each([
  '127.0.0.1',
  '169.254.169.254',
  '::1',
  '::ffff:169.254.169.254',
  'fd00:ec2::254',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b::169.254.169.254',
  '0064:FF9B:0:0:0:0:a9fe:a9fe',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a9fe:a9fe',
  '64:ff9b:1:2:3:4:6464:64c8',
  'localhost',
])('%s is no server outside', (address) => expect(isInner(address)).toBe(true));

it.each(['8.8.8.8', '2606:4700::1', '64:ff9b::808:808', '64:ff9b:1::808:808', '64:ff9b:2::a9fe:a9fe', '10.0.0.1'])(
  '%s may be one',
  (address) => expect(isInner(address)).toBe(false),
);

it('an address behind NAT64 is found again', () => {
  for (const address of ['169.254.169.254', '0.0.0.0', '255.255.255.255', '10.1.2.3'])
    expect(behindNat64(address).map(throughNat64)).toEqual([address, address]);
  for (const other of ['::1', '64:ff9c::1', '64:ff9b:0:1::a9fe:a9fe', 'fe80::64:ff9b'])
    expect(throughNat64(other)).toBeUndefined();
});
