import { expect, it, vi } from 'vitest';
import { ofFrozen } from '../../../src/lib/of-frozen.ts';

it('computes once what it says of an object that nobody can change, and each time what it says of others', () => {
  const compute = vi.fn(({ size }: { size: number }) => size);
  const sizeOf = ofFrozen(compute);
  const frozen = Object.freeze({ size: 1 });
  expect([sizeOf(frozen), sizeOf(frozen), compute.mock.calls.length]).toEqual([1, 1, 1]);
  const open = { size: 2 };
  expect(sizeOf(open)).toBe(2);
  open.size = 3;
  expect(sizeOf(open)).toBe(3);
});
