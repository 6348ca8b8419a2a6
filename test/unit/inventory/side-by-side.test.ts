import { describe, expect, test } from 'vitest';
import { gpuCounts } from '../../../src/inventory/nodes/gpu-counts.ts';
import { bareNode, deviceClass, gpuDevice, resourceClaim, resourceSlice } from '../../support/device-world.ts';
import { gpuPool, inventoryOf, placeRequest } from '../../support/inventory-world.ts';
import { classNameOf, Fleet, PREFIX, PRICES } from '../../support/mig-fleet.ts';
import { KINDS, migClass, migNode, PROFILES } from '../../support/mig-node.ts';

// Whole GPUs and slices of the same GPUs, for rent side by side.

test.each(Array.from({ length: 12 }, (_, index) => index + 1))(
  'in fleet %i the scheduler places what is offered, whatever it chooses',
  (seed) => {
    const fleet = new Fleet(seed);
    const steps = new Set<string>();
    for (let index = 0; index < 50; index += 1) {
      fleet.checkAll();
      steps.add(fleet.step());
    }
    expect(steps.size).toBe(4);
  },
);

/** One node with two GPUs. `held`: devices that claims of pods without an instance have. */
function twoGpus(...held: string[]) {
  const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classNameOf);
  return inventoryOf({
    nodes: [bareNode('n')],
    pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
    resourceSlices: migNode('n', 2),
    deviceClasses: KINDS.map((kind) => migClass(classNameOf(kind), kind)),
    resourceClaims: held.map((name) => resourceClaim(name, 'n', [name], { deviceClassName: 'other' })),
  });
}

function offered({ inventory }: ReturnType<typeof twoGpus>): Record<string, number> {
  const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  return Object.fromEntries(ones.map(({ resourceName, available }) => [resourceName.slice(PREFIX.length), available]));
}

const ALL = { gpu: 2, '1g-10gb': 14, '2g-20gb': 6, '3g-40gb': 4 };

describe('whole GPUs and their slices', () => {
  test.each([
    [[], ALL],
    [['gpu-0'], { gpu: 1, '1g-10gb': 7, '2g-20gb': 3, '3g-40gb': 2 }],
    [['gpu-0-1g-10gb-0'], { gpu: 1, '1g-10gb': 13, '2g-20gb': 5, '3g-40gb': 3 }],
    [['gpu-0-3g-40gb-4', 'gpu-1-2g-20gb-0'], { gpu: 0, '1g-10gb': 9, '2g-20gb': 4, '3g-40gb': 2 }],
  ])('leave of each other beside %j what is free', (held, free) => {
    expect(offered(twoGpus(...held))).toEqual(free);
  });

  test('have the part of the node that they have of a GPU, and prices by it', () => {
    const { inventory } = twoGpus();
    const offers = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
    const told = offers.map(({ product, cpuCores, prices }) => [product, cpuCores, prices.onDemand]);
    expect(told).toEqual([
      ['NVIDIA-A100-SXM4-80GB', 32, '7.00'],
      ['NVIDIA-A100-SXM4-80GB-MIG-1g.10gb', 4.5, '1.00'],
      ['NVIDIA-A100-SXM4-80GB-MIG-2g.20gb', 9.1, '2.00'],
      ['NVIDIA-A100-SXM4-80GB-MIG-3g.40gb', 13.7, '3.00'],
    ]);
  });

  test('count once in the fleet, and pieces of GPUs that are in use otherwise are nobody else\u2019s', () => {
    const { inventory } = twoGpus('gpu-0-1g-10gb-0');
    const view = inventory.viewOf('n');
    const counts = view === undefined ? [] : gpuCounts(view, []);
    expect(
      counts.map(({ resourceName, total, others, free }) => [resourceName.slice(PREFIX.length), total, others, free]),
    ).toEqual([
      ['1g-10gb', 14, 1, 13],
      ['2g-20gb', 6, 0, 5],
      ['3g-40gb', 4, 0, 3],
      ['gpu', 2, 0, 1],
    ]);
  });

  test('go where a GPU is in slices before they break a whole one', () => {
    const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classNameOf);
    const { inventory } = inventoryOf({
      nodes: ['a', 'b'].map((name) => bareNode(name)),
      pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
      resourceSlices: [...migNode('a', 1), ...migNode('b', 2)],
      deviceClasses: KINDS.map((kind) => migClass(classNameOf(kind), kind)),
      resourceClaims: [resourceClaim('c', 'b', ['gpu-0-1g-10gb-3'], { deviceClassName: 'other' })],
    });
    const nodeFor = (migProfile: string) => {
      const found = inventory.grant(placeRequest({ gpu: { count: 1, migProfile } }));
      return 'place' in found ? found.place.node : found.message;
    };
    expect(Object.keys(PROFILES).map((profile) => nodeFor(profile))).toEqual(['b', 'b', 'b']);
  });
});

test('slices that others leave room for one by one, and not all together, are offered as far as they fit together', () => {
  const memory = (value: string) => [{ counterSet: 'c', counters: { memory: { value } } }];
  const slice = (name: string, profile: string, value: string) =>
    gpuDevice(name, undefined, {
      attributes: { type: { string: 'mig' }, profile: { string: profile }, productName: { string: 'NVIDIA A30' } },
      consumesCounters: memory(value),
    });
  const pool = { name: 'n', generation: 1, resourceSliceCount: 2 };
  const sets = resourceSlice('n', [], {
    pool,
    sharedCounters: [{ name: 'c', counters: { memory: { value: '24Gi' } } }],
  });
  const parts = [slice('a', '2g.12gb', '12Gi'), slice('b', '2g.12gb', '12Gi'), slice('small', '1g.6gb', '6Gi')];
  const ofDriver = "device.driver == 'gpu.nvidia.com'";
  const expression = `${ofDriver} && device.attributes['gpu.nvidia.com'].profile == '2g.12gb'`;
  const { inventory } = inventoryOf({
    nodes: [bareNode('n')],
    pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName: 'gpu.nvidia.com' } })],
    resourceSlices: [{ ...sets, metadata: { name: 'counters' } }, resourceSlice('n', parts, { pool })],
    deviceClasses: [deviceClass(undefined, { selectors: [{ cel: { expression } }] })],
    resourceClaims: [resourceClaim('c', 'n', ['small'], { deviceClassName: 'other' })],
  });
  expect(inventory.offers().map(({ available }) => available)).toEqual([1]);
});
