import { describe, expect, it } from 'vitest';
import { clientNetwork } from '../../../src/lib/client-network.ts';
import { AddressLimiter } from '../../../src/ssh/login/address-limits.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { NO_ADDRESS_LIMITS } from '../../support/ssh-gateway.ts';

const LIMITS = { ...NO_ADDRESS_LIMITS, burst: 3, perSecond: 1, failures: 2, failureWindowSeconds: 10, pending: 2 };

/** Whether a key exchange was admitted; of a tenant, whether its login was. */
function asks(limiter: AddressLimiter, address: string, tenant?: string): boolean {
  const answer = limiter.exchange(address);
  return typeof answer !== 'string' && (tenant === undefined || answer.isOf(tenant));
}

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
    expect(asks(limiter, 'a', 'team')).toBe(true);
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
  const times = <T>(count: number, one: () => T): T[] => Array.from({ length: count }, one);

  it('of an address are few, and come back with time', () => {
    const clock = fakeClock();
    const limiter = new AddressLimiter({ ...NO_ADDRESS_LIMITS, exchanges: leak(2) }, clock);
    expect(times(3, () => asks(limiter, '10.0.0.1'))).toEqual([true, true, false]);
    expect(asks(limiter, '10.0.0.2')).toBe(true);
    clock.stall(1000);
    expect(times(2, () => asks(limiter, '10.0.0.1'))).toEqual([true, false]);
  });

  it('that lead to logins cost the address nothing, and strangers nothing', () => {
    const limits = { ...NO_ADDRESS_LIMITS, exchanges: leak(2), allExchanges: leak(2) };
    const limiter = new AddressLimiter(limits, fakeClock());
    const logins = times(10, () => {
      const admitted = asks(limiter, '10.0.0.1', 'team');
      limiter.ended('10.0.0.1', 'logged in');
      return admitted;
    });
    expect(logins).toEqual(times(10, () => true));
  });

  it('of all strangers are few, and leave room for addresses that logged in before', () => {
    const limiter = new AddressLimiter({ ...NO_ADDRESS_LIMITS, allExchanges: leak(3), logins: leak(4) }, fakeClock());
    asks(limiter, '10.0.0.1', 'team');
    const strangers = ['10.1.0.1', '10.2.0.1', '10.3.0.1', '10.4.0.1'].map((address) => asks(limiter, address));
    expect(strangers).toEqual([true, true, true, false]);
    expect(times(4, () => asks(limiter, '10.0.0.1'))).toEqual([true, true, true, false]);
    expect(limiter.exchange('10.0.0.1')).toBe('hurried');
  });

  it('that all strangers together have no room for are not counted against an address', () => {
    const limiter = new AddressLimiter(
      { ...NO_ADDRESS_LIMITS, exchanges: leak(1), allExchanges: leak(1) },
      fakeClock(),
    );
    const first = limiter.exchange('10.1.0.1');
    expect(limiter.exchange('10.0.0.1')).toBe('crowded');
    expect(typeof first !== 'string' && first.isOf('team')).toBe(true);
    expect(asks(limiter, '10.0.0.1')).toBe(true);
  });
});

describe('the logins of a tenant', () => {
  const LOGINS = { ...NO_ADDRESS_LIMITS, allExchanges: { burst: 2, perSecond: 1 }, logins: { burst: 3, perSecond: 1 } };
  const addresses = (count: number) => Array.from({ length: count }, (_, n) => `10.0.${n}.1`);

  it('from however many addresses take none of another tenant, nor of strangers', () => {
    const clock = fakeClock();
    const limiter = new AddressLimiter(LOGINS, clock);
    asks(limiter, '10.9.0.1', 'honest');
    expect(addresses(4).map((address) => asks(limiter, address, 'hostile'))).toEqual([true, true, true, false]);
    // What it may not pay stays with strangers, as every exchange from an address that nobody vouches for.
    expect([limiter.exchange('10.8.0.1'), limiter.exchange('10.8.0.2')].map((answer) => typeof answer)).toEqual([
      'object',
      'string',
    ]);
    expect(addresses(3).map((address) => limiter.exchange(address))).toEqual(['hurried', 'hurried', 'hurried']);
    expect([asks(limiter, '10.9.0.1', 'honest'), asks(limiter, '10.9.0.1', 'honest')]).toEqual([true, true]);
    clock.stall(1000);
    expect([asks(limiter, '10.0.0.1', 'hostile'), asks(limiter, '10.0.0.1', 'hostile')]).toEqual([true, false]);
  });

  it('are paid once, however often a client shows who it is', () => {
    const limiter = new AddressLimiter(LOGINS, fakeClock());
    const answer = limiter.exchange('10.0.0.1');
    if (typeof answer === 'string') throw new Error(answer);
    expect(Array.from({ length: 9 }, () => answer.isOf('team'))).not.toContain(false);
    expect([asks(limiter, '10.0.0.1', 'team'), asks(limiter, '10.0.0.1', 'team')]).toEqual([true, true]);
    expect(limiter.exchange('10.0.0.1')).toBe('hurried');
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
