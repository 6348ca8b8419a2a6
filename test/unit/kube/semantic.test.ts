import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseQuantity } from '../../../src/kube/quantity.ts';
import { sameJson } from '../../../src/lib/json.ts';

/** The same value with the fields of every object in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

describe('sameJson', () => {
  test('does not look at the order of fields', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => sameJson(reversed(value), value)));
  });

  test.each<[unknown, unknown]>([
    [{ a: undefined }, {}],
    [[{ a: 1 }], [{ a: 1 }]],
  ])('%j is %j', (left, right) => {
    expect(sameJson(left, right)).toBe(true);
  });

  test.each<[unknown, unknown]>([
    [
      [1, 2],
      [2, 1],
    ],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1, b: 2 }, { a: 1 }],
    [null, {}],
    [[], {}],
    ['1', 1],
  ])('%j is not %j', (left, right) => {
    expect(sameJson(left, right)).toBe(false);
  });
});

test.each([
  ['1', 1],
  ['100m', 0.1],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['1e3', 1000],
  ['2k', 2000],
  ['Gi', undefined],
  ['1 Gi', undefined],
  ['', undefined],
])('quantity %j is %j', (text, value) => {
  expect(parseQuantity(text)).toBe(value);
});
