import { describe, expect, it } from 'vitest';
import { clientNetwork } from '../../../src/lib/client-network.ts';
import { AddressLimiter } from '../../../src/ssh/login/address-limits.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { NO_ADDRESS_LIMITS } from '../../support/ssh-gateway.ts';

const LIMITS = { ...NO_ADDRESS_LIMITS, burst: 3, perSecond: 1, failures: 2, failureWindowSeconds: 10, pending: 2 };

describe('AddressLimiter', () => {
  it('refuses a burst and admits again with time', () => {
    const clock = fakeClock();
    const limiter = new AddressLimiter(LIMITS, clock);
    const attempt = (): boolean => {
      const admitted = limiter.admit('10.0.0.1');
      if (admitted) limiter.ended('10.0.0.1', 'closed');
      return admitted;
    };
    expect([attempt(), attempt(), attempt(), attempt()]).toEqual([true, true, true, false]);
    clock.stall(1000);
    expect([attempt(), attempt()]).toEqual([true, false]);
    expect(limiter.admit('10.0.0.2')).toBe(true);
  });

  it('refuses an address whose logins fail, for a while', () => {
    const clock = fakeClock();
    const limiter = new AddressLimiter({ ...LIMITS, burst: 100 }, clock);
    for (let failure = 0; failure < 2; failure += 1) {
      limiter.admit('a');
      limiter.ended('a', 'failed');
    }
    expect(limiter.admit('a')).toBe(false);
    clock.stall(6000);
    expect(limiter.admit('a')).toBe(true);
  });

  it('lets an address from which somebody logged in have more logins under way', () => {
    const limiter = new AddressLimiter({ ...NO_ADDRESS_LIMITS, pending: 1, pendingOfKnown: 2 }, fakeClock());
    expect([limiter.admit('a'), limiter.admit('a')]).toEqual([true, false]);
    limiter.ended('a', 'logged in');
    expect([limiter.admit('a'), limiter.admit('a'), limiter.admit('a')]).toEqual([true, true, false]);
  });

  it('bounds logins under way', () => {
    const limiter = new AddressLimiter(LIMITS, fakeClock());
    expect([limiter.admit('a'), limiter.admit('a'), limiter.admit('a')]).toEqual([true, true, false]);
  });
});

describe('key exchanges', () => {
  const leak = (burst: number) => ({ burst, perSecond: 1 });
  const times = (count: number, exchange: () => boolean): boolean[] => Array.from({ length: count }, exchange);

  it('of an address are few, and come back with time', () => {
    const clock = fakeClock();
    const limiter = new AddressLimiter({ ...NO_ADDRESS_LIMITS, exchanges: leak(2) }, clock);
    expect(times(3, () => limiter.exchange('10.0.0.1'))).toEqual([true, true, false]);
    expect(limiter.exchange('10.0.0.2')).toBe(true);
    clock.stall(1000);
    expect(times(2, () => limiter.exchange('10.0.0.1'))).toEqual([true, false]);
  });

  it('that lead to logins cost nothing', () => {
    const limits = { ...NO_ADDRESS_LIMITS, exchanges: leak(2), allExchanges: leak(2) };
    const limiter = new AddressLimiter(limits, fakeClock());
    const logins = times(10, () => {
      const admitted = limiter.exchange('10.0.0.1');
      limiter.ended('10.0.0.1', 'logged in');
      return admitted;
    });
    expect(logins).toEqual(times(10, () => true));
  });

  it('of all strangers are few, and leave room for addresses that logged in before', () => {
    const limiter = new AddressLimiter({ ...NO_ADDRESS_LIMITS, allExchanges: leak(3) }, fakeClock());
    limiter.exchange('10.0.0.1');
    limiter.ended('10.0.0.1', 'logged in');
    const strangers = ['10.1.0.1', '10.2.0.1', '10.3.0.1', '10.4.0.1'].map((address) => limiter.exchange(address));
    expect(strangers).toEqual([true, true, true, false]);
    expect(times(4, () => limiter.exchange('10.0.0.1'))).toEqual([true, true, true, false]);
  });

  it('that all strangers together have no room for are not counted against an address', () => {
    const limiter = new AddressLimiter(
      { ...NO_ADDRESS_LIMITS, exchanges: leak(1), allExchanges: leak(1) },
      fakeClock(),
    );
    expect(limiter.exchange('10.1.0.1')).toBe(true);
    expect(limiter.exchange('10.0.0.1')).toBe(false);
    limiter.ended('10.1.0.1', 'logged in');
    expect(limiter.exchange('10.0.0.1')).toBe(true);
  });
});

describe('clientNetwork', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::7', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('counts %s as %s', (address, key) => {
    expect(clientNetwork(address)).toBe(key);
  });
});
