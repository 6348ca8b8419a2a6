import { expect, test } from 'vitest';
import { KeyBackoff, retryLimiter, TokenBucket } from '../../../src/runtime/ratelimiter.ts';
import { fakeClock } from '../../support/fake-clock.ts';

test('a key waits twice as long each time, up to the cap, and starts over when forgotten', () => {
  const limiter = new KeyBackoff({ firstMs: 1, maxMs: 10 });
  expect([1, 2, 3, 4, 5, 6].map(() => limiter.next('one'))).toEqual([1, 2, 4, 8, 10, 10]);
  expect(limiter.next('two')).toBe(1);
  limiter.forget('one');
  expect(limiter.next('one')).toBe(1);
});

test('a key that failed very often still gets a number', () => {
  const limiter = new KeyBackoff({ firstMs: 1000, maxMs: 60_000 });
  for (let index = 0; index < 5000; index += 1) limiter.next('one');
  expect(limiter.next('one')).toBe(60_000);
});

test('the bucket gives its burst at once, then one at a time', async () => {
  const clock = fakeClock();
  const bucket = new TokenBucket(clock, { perSecond: 10, burst: 3, mostMs: 60_000 });
  const next = () => bucket.next();
  expect([next(), next(), next(), next(), next()]).toEqual([0, 0, 0, 100, 200]);
  await clock.advance(10_000);
  expect([next(), next(), next(), next()]).toEqual([0, 0, 0, 100]);
});

test('retries wait for the longer of both', () => {
  const limiter = retryLimiter(fakeClock());
  const waits = Array.from({ length: 130 }, (_, index) => limiter.next(`key-${index}`));
  expect(waits[0]).toBe(1_000);
  expect(waits[129]).toBe(3_000);
  expect(limiter.next('key-0')).toBe(3_100);
});

test('thousands of keys that fail at once are all tried again within a minute, and leave no debt behind', async () => {
  const clock = fakeClock();
  const limiter = retryLimiter(clock);
  const waits = Array.from({ length: 2_000 }, (_, index) => limiter.next(`key-${index}`));
  expect(Math.max(...waits)).toBe(60_000);
  expect(waits.filter((wait) => wait < 60_000).length).toBeGreaterThan(600);
  await clock.advance(60_000);
  expect(limiter.next('another')).toBe(1_000);
});

test('a namespace whose keys fail without end does not make those of others wait', () => {
  const limiter = retryLimiter(fakeClock());
  for (let index = 0; index < 2_000; index += 1) limiter.next(`hostile/key-${index}`);
  expect(limiter.next('hostile/another')).toBe(60_000);
  expect(limiter.next('honest/one')).toBe(1_000);
});
