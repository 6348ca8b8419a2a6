import { Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createHistogram } from '../../../src/runtime/histogram.ts';

const SHAPE = { name: 'seconds', help: 'How long.', buckets: [0.1, 0.5, 2] };
const OBSERVED: [string, number][] = [
  ['a', 0.05],
  ['a', 0.1],
  ['a', 7],
  ['b', 0.5],
  ['b', 0.6],
];

test("reads as prom-client's own histogram does", async () => {
  const ours = new Registry();
  const histogram = createHistogram(ours, SHAPE);
  const theirs = new Registry();
  const reference = new Histogram({ ...SHAPE, labelNames: ['route', 'code'], registers: [theirs] });
  for (const [route, value] of OBSERVED) {
    histogram.series({ route, code: '200' }).observe(value);
    reference.observe({ route, code: '200' }, value);
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});
