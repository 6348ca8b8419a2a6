import { expect, test } from 'vitest';
import { SharedContents } from '../../../src/caches/shared-contents.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

function rented(name: string, onStart: string, hashId = onStart): GpuInstance {
  return gpuInstance(name, {}, { template: { name: 't', namespace: 'n', uid: 'u', hashId, spec: { onStart } } });
}

test('instances of one content keep one copy, and everything else of their own', () => {
  const contents = new SharedContents();
  const [a, b, c] = [rented('a', 'x'), rented('b', 'x'), rented('c', 'y')].map((one) => contents.share(one));
  expect(b?.status?.template?.spec).toBe(a?.status?.template?.spec);
  expect([b, c]).toEqual([rented('b', 'x'), rented('c', 'y')]);
  expect(contents.size).toBe(2);
});

test('a hash that is written beside another content brings nobody that content', () => {
  const contents = new SharedContents();
  contents.share(rented('thief', 'evil', 'known'));
  expect(contents.share(rented('a', 'good', 'known')).status?.template?.spec).toEqual({ onStart: 'good' });
});

test('an instance without a template is left as it is', () => {
  const contents = new SharedContents();
  const instance = gpuInstance('a');
  expect(contents.share(instance)).toBe(instance);
  expect(contents.size).toBe(0);
});
