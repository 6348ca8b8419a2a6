import { describe, expect, test } from 'vitest';
import {
  A100,
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';

// Who rented GPUs finds the same again, whatever the operator calls and offers them.

const RENTED = {
  product: A100,
  gpuCount: 4,
  isolation: 'whole',
  memoryMb: 81_920,
  simulated: false,
  pool: 'a',
  offerId: 1,
} as const;
const PRICES = [{ product: '*', onDemand: '2.00', interruptible: '1.00' }];

function labelled(name: string, labels: Record<string, string>) {
  return gpuNode(name, { labels });
}

function nodeOf(grant: object): string | undefined {
  return 'place' in grant ? (grant.place as { node: string }).node : undefined;
}

test.each([
  ['the driver reports some MiB less', { 'nvidia.com/gpu.memory': '81559' }, true],
  ['more memory', { 'nvidia.com/gpu.memory': '98304' }, true],
  ['no word of its memory', { 'nvidia.com/gpu.memory': '' }, true],
  ['half the memory', { 'nvidia.com/gpu.memory': '40960' }, false],
  ['another product', { 'nvidia.com/gpu.product': 'L4' }, false],
  ['time-sliced', { 'nvidia.com/gpu.replicas': '4', 'nvidia.com/gpu.product': `${A100}-SHARED` }, false],
])('%s: found %s %s', (_name, labels, found) => {
  const { inventory } = inventoryOf({ nodes: [labelled('n', labels)] });
  const request = placeRequest({ offerId: 12, rented: RENTED });
  expect(nodeOf(inventory.grant(request))).toBe(found ? 'n' : undefined);
  expect(inventory.hasPlace(request)).toBe(found);
  expect(inventory.placesFor(request)).toBe(found ? 2 : 0);
  if (!found) expect(inventory.grant(request)).toMatchObject({ refusal: 'NoCapacity' });
});

test('a replica of a shared GPU finds the same part of one again', () => {
  const product = `${A100}-SHARED`;
  const half = labelled('n', { 'nvidia.com/gpu.replicas': '2', 'nvidia.com/gpu.product': product });
  const { inventory } = inventoryOf({ nodes: [half] });
  const replica = { ...RENTED, gpuCount: 1, isolation: 'time_sliced', product, memoryMb: 40_960 } as const;
  expect(nodeOf(inventory.grant(placeRequest({ rented: { ...replica, gpuShare: '1/2' } })))).toBe('n');
  expect(nodeOf(inventory.grant(placeRequest({ rented: { ...replica, gpuShare: '1/4' } })))).toBeUndefined();
  // As it was rented before anybody noted the part.
  expect(nodeOf(inventory.grant(placeRequest({ rented: replica })))).toBe('n');
});

test('a MIG slice finds its profile again', () => {
  const slice = {
    ...RENTED,
    gpuCount: 1,
    isolation: 'mig',
    migProfile: '1g.10gb',
    memoryMb: 9728,
    product: `${A100}-MIG-1g.10gb`,
  } as const;
  const labels = { 'nvidia.com/mig-1g.10gb.memory': '9700' };
  const node = gpuNode('n', { labels, allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb': '7' } });
  const { inventory } = inventoryOf({ nodes: [node] });
  expect(nodeOf(inventory.grant(placeRequest({ rented: slice })))).toBe('n');
  expect(nodeOf(inventory.grant(placeRequest({ rented: { ...slice, migProfile: '2g.20gb' } })))).toBeUndefined();
});

test('real GPUs never come back as simulated ones', () => {
  const { inventory } = inventoryOf({ nodes: [labelled('n', { 'berth.dev/simulated': 'true' })] });
  expect(nodeOf(inventory.grant(placeRequest({ rented: RENTED })))).toBeUndefined();
  expect(nodeOf(inventory.grant(placeRequest({ rented: { ...RENTED, simulated: true } })))).toBe('n');
});

describe('a size that no pool offers any more', () => {
  const pool = gpuPool('a', { sizes: [8], prices: PRICES });

  test('comes back where the GPUs stand free, at the price of so many', () => {
    const { inventory, caches } = inventoryOf({ nodes: [gpuNode('n')], pools: [pool] });
    expect(inventory.offers().map(({ gpuCount }) => gpuCount)).toEqual([8]);
    expect(inventory.grant(placeRequest({ rented: RENTED }))).toMatchObject({
      place: { node: 'n', offerClass: { gpuCount: 4, prices: { onDemand: '8.00' } } },
    });
    expect(inventory.placesFor(placeRequest({ rented: RENTED }))).toBe(2);
    const owner = gpuInstance('o', {}, { claim: claimOn('n', { gpuCount: 5 }) });
    caches.instances.upsert(owner);
    expect(inventory.hasPlace(placeRequest({ rented: RENTED }))).toBe(false);
    caches.instances.remove(owner);
    expect(inventory.hasPlace(placeRequest({ rented: RENTED }))).toBe(true);
  });

  test('is found too where interruptible instances must go for it', () => {
    const status = { claim: claimOn('n', { gpuCount: 8 }) };
    const owner = gpuInstance('o', { type: 'Interruptible' }, status);
    const { inventory } = inventoryOf({ nodes: [gpuNode('n')], pools: [pool], instances: [owner] });
    expect(inventory.preempt(placeRequest({ rented: RENTED }))).toMatchObject({ victims: [{ key: 'default/o' }] });
  });

  test('follows the nodes and the pools as they change', () => {
    const { inventory, caches } = inventoryOf({ nodes: [], pools: [pool] });
    expect(inventory.hasPlace(placeRequest({ rented: RENTED }))).toBe(false);
    caches.nodes.upsert(gpuNode('n'));
    expect(inventory.hasPlace(placeRequest({ rented: RENTED }))).toBe(true);
    const cheaper = gpuPool('a', { prices: [{ product: '*', onDemand: '1.00', interruptible: '1.00' }] });
    caches.pools.upsert({ ...cheaper, metadata: { name: 'a', resourceVersion: '101' } });
    expect(inventory.grant(placeRequest({ rented: RENTED }))).toMatchObject({
      place: { offerClass: { prices: { onDemand: '4.00' } } },
    });
  });
});

test('its own offer comes first, then its own pool, then the price', () => {
  const nodes = ['a', 'b', 'c'].map((pool) => labelled(`n-${pool}`, { pool }));
  const pools = [
    gpuPool('a', { nodeSelector: { pool: 'a' }, prices: [{ product: '*', onDemand: '3.00', interruptible: '1.00' }] }),
    gpuPool('b', { nodeSelector: { pool: 'b' }, prices: [{ product: '*', onDemand: '2.00', interruptible: '1.00' }] }),
    gpuPool('c', { nodeSelector: { pool: 'c' }, prices: [{ product: '*', onDemand: '1.00', interruptible: '1.00' }] }),
  ];
  const { inventory } = inventoryOf({ nodes, pools });
  const at = (pool: string) => nodeOf(inventory.grant(placeRequest({ rented: { ...RENTED, pool } })));
  expect([at('a'), at('b'), at('gone')]).toEqual(['n-a', 'n-b', 'n-c']);
});
