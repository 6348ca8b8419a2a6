import { describe, expect, it } from 'vitest';
import { AddressLimiter, limitKey } from '../../../src/ssh/login/address-limits.ts';
import { fakeClock } from '../../support/fake-clock.ts';

const LIMITS = { burst: 3, perSecond: 1, failures: 2, failureWindowSeconds: 10, pending: 2 };

describe('AddressLimiter', () => {
  it('refuses a burst and admits again with time', () => {
    const clock = fakeClock();
    const limiter = new AddressLimiter(LIMITS, clock);
    const attempt = (): boolean => {
      const admitted = limiter.admit('10.0.0.1');
      if (admitted) limiter.ended('10.0.0.1', false);
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
      limiter.ended('a', true);
    }
    expect(limiter.admit('a')).toBe(false);
    clock.stall(6000);
    expect(limiter.admit('a')).toBe(true);
  });

  it('bounds logins under way', () => {
    const limiter = new AddressLimiter(LIMITS, fakeClock());
    expect([limiter.admit('a'), limiter.admit('a'), limiter.admit('a')]).toEqual([true, true, false]);
  });
});

describe('limitKey', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::7', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('counts %s as %s', (address, key) => {
    expect(limitKey(address)).toBe(key);
  });
});
