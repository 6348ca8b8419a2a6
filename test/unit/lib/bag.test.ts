import { expect, it } from 'vitest';
import { Bag } from '../../../src/lib/bag.ts';

it('holds what was added and not deleted, in whatever order that happens', () => {
  const bag = new Bag<string>();
  for (const item of ['a', 'b', 'c', 'd']) bag.add(item);
  for (const gone of ['a', 'd', 'x', 'c']) {
    bag.delete(gone);
    expect([...bag]).not.toContain(gone);
  }
  expect([bag.size, ...bag]).toEqual([1, 'b']);
  bag.add('e');
  expect([...bag].toSorted()).toEqual(['b', 'e']);
});

it('may change while something walks over it', () => {
  const bag = new Bag<number>();
  for (let item = 0; item < 5; item += 1) bag.add(item);
  const seen: number[] = [];
  for (const item of bag) {
    seen.push(item);
    bag.delete(item);
    bag.add(item + 10);
  }
  expect([seen, bag.size]).toEqual([[0, 1, 2, 3, 4], 5]);
});
