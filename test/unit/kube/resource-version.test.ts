import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareVersions, hasReached } from '../../../src/kube/watch/resource-version.ts';

test('orders as whole numbers of any size', () => {
  const version = fc.bigInt({ min: 0n, max: 2n ** 80n });
  fc.assert(
    fc.property(version, version, (left, right) => {
      const want = left < right ? -1 : left > right ? 1 : 0;
      expect(Math.sign(compareVersions(String(left), String(right)) ?? Number.NaN)).toBe(want);
    }),
  );
});

test('keeps apart what a number would round to the same value', () => {
  expect(compareVersions('9007199254740993', '9007199254740992')).toBeGreaterThan(0);
});

test.each(['', 'abc', '01', '-1', '1.5'])('does not compare %j', (odd) => {
  expect(compareVersions(odd, '1')).toBeUndefined();
  expect(hasReached(odd, '1')).toBe(false);
});

test('has reached what is the same or older', () => {
  expect(hasReached('10', '9')).toBe(true);
  expect(hasReached('10', '10')).toBe(true);
  expect(hasReached('9', '10')).toBe(false);
});
