import { expect, test } from 'vitest';
import { WaitingLine } from '../../../src/controllers/gpu-instance/waiting-line.ts';
import type { GpuInstanceSpec } from '../../../src/resources/gpu-instance.ts';
import { claimOn, gpuInstance, gpuNode, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

/** A line in front of one node with eight GPUs, some of which are rented. */
function lineWith(...rented: { name: string; count: number; type?: GpuInstanceSpec['type'] }[]) {
  const instances = rented.map(({ name, count, type = 'OnDemand' }) =>
    gpuInstance(name, { type }, { claim: claimOn('n', { gpuCount: count }) }),
  );
  const { inventory, caches } = inventoryOf({ nodes: [gpuNode('n')], instances });
  const line = new WaitingLine(inventory);
  const wait = (name: string, count: number, type: GpuInstanceSpec['type'] = 'OnDemand'): void =>
    line.add(`default/${name}`, gpuInstance(name, { type }), placeRequest({ type, gpu: { count } }));
  return { line, wait, caches };
}

test('on demand comes first, then the older one; one that needs more than is free does not count', () => {
  const { line, wait } = lineWith({ name: 'other', count: 4 });
  wait('spot', 1, 'Interruptible');
  wait('b', 2);
  wait('a', 2);
  wait('large', 8);
  expect(line.ready()).toEqual(['default/a', 'default/b', 'default/spot']);
  expect(line.before('default/b', gpuInstance('b'))).toBe('default/a');
  expect(line.before('default/a', gpuInstance('a'))).toBeUndefined();
});

test('an instance is ready to preempt when the preemptions would be enough', () => {
  const { line, wait, caches } = lineWith(
    { name: 'sure', count: 4 },
    { name: 'spot', count: 4, type: 'Interruptible' },
  );
  wait('large', 8);
  wait('late', 8, 'Interruptible');
  expect(line.preempting()).toEqual([]);
  caches.instances.remove(gpuInstance('sure'));
  expect(line.preempting()).toEqual(['default/large']);
  expect(line.ready()).toEqual([]);
});

test('a removed instance is not in line', () => {
  const { line, wait } = lineWith();
  wait('a', 1);
  line.remove('default/a');
  expect([line.size, line.ready(), line.preempting()]).toEqual([0, [], []]);
});
