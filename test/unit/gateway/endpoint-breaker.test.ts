import { expect, it } from 'vitest';
import { EndpointBreaker } from '../../../src/gateway/balance/endpoint-breaker.ts';
import { fakeClock } from '../../support/fake-clock.ts';

function setup() {
  const clock = fakeClock();
  clock.stall(1000);
  const breaker = new EndpointBreaker(clock);
  const failFor = (tenant: string, count = 1): void => {
    for (let done = 0; done < count; done += 1) breaker.failFor(tenant, 'connection', clock.monotonic());
  };
  return { clock, breaker, failFor };
}

it('opens for the tenant whose calls fail, and for no other', () => {
  const { breaker, failFor, clock } = setup();
  failFor('a', 50);
  expect([breaker.permits('a'), breaker.permits('b')]).toEqual([false, true]);
  expect(breaker.state).toBe('closed');
  expect([breaker.waitMs('a'), breaker.waitMs('b')]).toEqual([1000, 0]);
  clock.stall(1000);
  expect(breaker.permits('a')).toBe(true);
  breaker.begin('a');
  expect(breaker.permits('a')).toBe(false);
  breaker.succeed('a');
  expect(breaker.permits('a')).toBe(true);
});

it('opens for all when the calls of two tenants fail, or when no call can be the cause', () => {
  const two = setup();
  two.failFor('a', 2);
  two.failFor('b', 2);
  expect(two.breaker.permits('c')).toBe(false);
  const down = setup();
  for (let count = 0; count < 3; count += 1) down.breaker.fail('connection', down.clock.monotonic());
  expect(down.breaker.permits('c')).toBe(false);
  const hung = setup();
  hung.breaker.fail('hung', hung.clock.monotonic());
  expect(hung.breaker.permits('c')).toBe(false);
});

it('forgets what all have added when a call succeeds', () => {
  const { breaker, failFor } = setup();
  for (let round = 0; round < 20; round += 1) {
    failFor('a', 2);
    breaker.succeed('b');
    failFor('c');
    breaker.succeed('b');
  }
  expect(breaker.permits('b')).toBe(true);
});

it('is not kept open by the trials of one tenant', () => {
  const { breaker, failFor, clock } = setup();
  failFor('a', 2);
  failFor('b', 2);
  clock.stall(1000);
  for (let trial = 0; trial < 5; trial += 1) {
    breaker.begin('a');
    failFor('a');
    expect(breaker.permits('honest')).toBe(true);
  }
});

it('rests for the tenant whose request was refused for now, and for all when those of two were', () => {
  const { breaker, clock } = setup();
  breaker.restFor('a', 7000);
  expect([breaker.permits('a'), breaker.permits('b')]).toEqual([false, true]);
  // A call that was under way ends well meanwhile.
  breaker.succeed('a');
  expect(breaker.waitMs('a')).toBe(7000);
  breaker.restFor('b', 3000);
  expect(breaker.waitMs('c')).toBe(3000);
  clock.stall(7000);
  expect(['a', 'b', 'c'].every((tenant) => breaker.permits(tenant))).toBe(true);
  // The first pause is over, so the next one is that of one tenant again.
  breaker.restFor('b', 3000);
  expect(breaker.permits('c')).toBe(true);
});
