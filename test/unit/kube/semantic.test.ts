import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { contains, parseQuantity, sameJson } from '../../../src/kube/semantic.ts';

describe('contains', () => {
  test.each<[string, unknown, unknown]>([
    ['fields of others', { a: 1, server: 2 }, { a: 1 }],
    ['undefined says nothing', { a: 1 }, { a: 1, b: undefined }],
    ['null and empty are absent', {}, { a: null, b: {}, c: [] }],
    [
      'list items by name, in any order, among others',
      { c: [{ name: 'y' }, { name: 'x', v: 1, d: 2 }] },
      { c: [{ name: 'x', v: 1 }] },
    ],
    ['finalizers among others', { f: ['a', 'b'] }, { f: ['b'] }],
    ['quantities as the server writes them', { limits: { cpu: '1' } }, { limits: { cpu: '1000m' } }],
    ['quantities in binary', { requests: { memory: '1Gi' } }, { requests: { memory: '1024Mi' } }],
  ])('%s', (_what, current, desired) => {
    expect(contains(current, desired)).toBe(true);
  });

  test.each<[string, unknown, unknown]>([
    ['another value', { a: 1 }, { a: 2 }],
    ['an absent field', {}, { a: 1 }],
    ['an explicit false', {}, { automount: false }],
    ['another item of that name', { c: [{ name: 'x', v: 2 }] }, { c: [{ name: 'x', v: 1 }] }],
    ['an absent finalizer', { f: ['a'] }, { f: ['b'] }],
    ['another quantity', { limits: { cpu: '1' } }, { limits: { cpu: '2' } }],
    [
      'what looks like a quantity and is not',
      { env: [{ name: 'A', value: '1' }] },
      { env: [{ name: 'A', value: '1000m' }] },
    ],
    ['arguments in another order', { args: ['-c', '-x'] }, { args: ['-c', '-y'] }],
  ])('not %s', (_what, current, desired) => {
    expect(contains(current, desired)).toBe(false);
  });

  test('everything contains itself', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => contains(structuredClone(value), value)));
  });
});

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
