import { expect, it } from 'vitest';
import { requestHash } from '../../../src/http/interface/idempotency.ts';
import { contentHash } from '../../../src/lib/content-hash.ts';

const ONE_ORDER = 'd3626ac30a87e6f7a6428233b3c68299';

// Objects in clusters have such hashes: a test that fails here says that another value would not be found again.
it.each<[content: unknown, hash: string, withoutNulls?: string]>([
  [{}, '44136fa355b3678a1146ad16f7e8649e'],
  [{ b: 1, a: 2 }, ONE_ORDER],
  [{ a: 2, b: 1 }, ONE_ORDER],
  [{ a: null, b: [null, { c: null, d: 1 }] }, 'dd758568fef78f726b0bccfad07535b8', '410ea6bccb026f0087bb4570109f0b3f'],
  [{ a: undefined, b: 'ü', Z: 1, '10': 1, '9': 2, é: true }, 'bc6080eb86f264f2fb91db89e4e3033c'],
  [[3, { y: null, x: undefined }, 's', null], '3f5627608294277edb1c50cfda075fe5', '85f78fcc67b48d4b312db5e4a48ca316'],
  ['text', '1e1d0f251d3a76fa2b1bfc8116407857'],
  [1.5, '9f29a130438b81170b92a42650f9a942'],
  [null, '74234e98afe7498fb5daf1f36ac2d78a'],
  [
    {
      name: 'train',
      gpu: { product: 'NVIDIA-L4', count: 1 },
      env: [{ name: 'A', value: '1' }],
      disk: null,
      ports: undefined,
    },
    '9e7da519f1e811db1fcd1df4210e6620',
    '524d18599010b24f1f8647d474466d2d',
  ],
])('the hash of %j', (content, hash, withoutNulls = hash) => {
  expect(contentHash(content)).toBe(hash);
  expect(contentHash(content, 'nulls are absent')).toBe(withoutNulls);
  expect(requestHash(content)).toBe(withoutNulls);
});
