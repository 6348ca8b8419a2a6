import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ownerNetwork } from '../../../src/lib/client-network.ts';
import { AddressLimiter } from '../../../src/ssh/login/address-limits.ts';
import { PendingLogins } from '../../../src/ssh/login/pending-logins.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { NO_ADDRESS_LIMITS } from '../../support/ssh-gateway.ts';

class Visitor extends EventEmitter {
  destroyed = false;
  readonly remoteAddress: string;
  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }
  destroy(): void {
    this.destroyed = true;
  }
}

function visit(room: PendingLogins, ...addresses: string[]): Visitor[] {
  return addresses.map((address) => {
    const visitor = new Visitor(address);
    expect(room.admit(visitor as unknown as Socket)).toBe(true);
    return visitor;
  });
}

function gone(visitors: Visitor[]): number[] {
  return visitors.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));
}

function room(places: number): PendingLogins {
  return new PendingLogins(new AddressLimiter(NO_ADDRESS_LIMITS, fakeClock()), { places, graceMs: 1000 });
}

describe('a newcomer when all places are taken', () => {
  it('gets that of the oldest of the address that holds the most', () => {
    const logins = room(5);
    const visitors = visit(logins, '10.1.0.1', '10.2.0.1', '10.2.0.1', '10.3.0.1', '10.2.0.1', '10.4.0.1', '10.5.0.1');
    expect(gone(visitors)).toEqual([1, 2]);
    logins.closeAll();
  });

  it('gets that of the largest network, and in it of the largest address', () => {
    const logins = room(6);
    const crowd = ['2001:db8:1:1::1', '2001:db8:1:2::1', '2001:db8:1:3::1', '2001:db8:1:3::2'];
    const visitors = visit(logins, '2001:db8:2:1::1', '2001:db8:2:1::2', ...crowd, '2001:db8:3::1', '2001:db8:4::1');
    expect(gone(visitors)).toEqual([2, 4]);
    logins.closeAll();
  });

  it('loses its own place when its address holds the most', () => {
    const logins = room(3);
    const visitors = visit(logins, '10.1.0.1', '10.2.0.1', '10.3.0.1', '10.3.0.1', '10.3.0.1');
    expect(gone(visitors)).toEqual([2, 3]);
    logins.closeAll();
  });

  it('gets a place that was given up, at the cost of nobody', () => {
    const logins = room(2);
    const [first, second] = visit(logins, '10.1.0.1', '10.2.0.1');
    logins.ended(first as unknown as Socket, 'logged in');
    const [third] = visit(logins, '10.3.0.1');
    expect([first, second, third].map((each) => each?.destroyed)).toEqual([false, false, false]);
    logins.closeAll();
  });
});

describe('ownerNetwork', () => {
  it.each([
    ['10.1.2.3', '10.1.2.0/24'],
    ['::ffff:10.1.2.3', '10.1.2.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:db8::7', '2001:db8:0::/48'],
  ])('of %s is %s', (address, network) => {
    expect(ownerNetwork(address)).toBe(network);
  });
});
