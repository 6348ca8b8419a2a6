import { expect, test } from 'vitest';
import { BodyShares } from '../../../src/gateway/limits/body-shares.ts';

test('what is kept in case that it is needed takes a quarter at most, of all bytes and of those of its tenant', () => {
  const shares = new BodyShares(1000);
  const own = shares.hold('a', 200);
  own.take(50);
  expect(own.hasRoom).toBe(true);
  own.take(1);
  expect([own.hasRoom, shares.hold('b', 200).hasRoom]).toEqual([false, true]);
  shares.hold('c', 1000).take(200);
  expect(shares.hold('b', 200).hasRoom).toBe(false);
  own.release();
  expect(shares.hold('b', 200).hasRoom).toBe(true);
});
