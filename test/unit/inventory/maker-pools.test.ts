import { expect, test } from 'vitest';
import { pruneNode } from '../../../src/caches/prune.ts';
import { gpuCounts } from '../../../src/inventory/nodes/gpu-counts.ts';
import type { Inventory } from '../../../src/inventory/inventory.ts';
import type { Node } from '../../../src/kube/types.ts';
import {
  A100,
  claimOn,
  deviceNode,
  gpuInstance,
  gpuNode,
  gpuPod,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';

const MI300X = 'AMD_Instinct_MI300X_OAM';
const AMD_LABELS = { 'amd.com/gpu.product-name': MI300X, 'amd.com/gpu.vram': '192G' };
const AMD_POOL = gpuPool('amd', {
  devices: { preset: 'AMD' },
  prices: [{ product: MI300X, onDemand: '3.00', interruptible: '1.50' }],
});

function amdNode(name: string, over: { taints?: { key: string; effect: string }[]; healthy?: string } = {}): Node {
  const { healthy = '8', taints = [] } = over;
  const devices = { allocatable: { 'amd.com/gpu': healthy }, capacity: { 'amd.com/gpu': '8' }, taints };
  return pruneNode(deviceNode(name, AMD_LABELS, devices));
}

function offered(inventory: Inventory): string[] {
  const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  return ones.map(({ pool, product, available }) => `${pool}: ${available} x ${product}`).toSorted();
}

test('pools that select every node share them by what GPUs the nodes have', () => {
  // By name alone the pool of AMD would come first and have all nodes.
  const { inventory } = inventoryOf({ nodes: [gpuNode('n'), amdNode('a')], pools: [AMD_POOL, gpuPool('default')] });
  expect(offered(inventory)).toEqual([`amd: 8 x ${MI300X}`, `default: 8 x ${A100}`]);
});

test('a node whose GPUs are all out of service stays in its pool', () => {
  const nodes = [amdNode('a', { healthy: '0' })];
  const { inventory } = inventoryOf({ nodes, pools: [gpuPool('a-first'), AMD_POOL] });
  const view = inventory.viewOf('a');
  expect(view?.facts.pool?.name).toBe('amd');
  expect(view ? gpuCounts(view, []) : []).toMatchObject([{ product: MI300X, total: 8, unhealthy: 8, free: 0 }]);
});

test('of a node with GPUs of two makers only those of its pool are for rent', () => {
  const both = gpuNode('both', { labels: AMD_LABELS, allocatable: { 'amd.com/gpu': '4' } });
  const asked = { nodeSelector: { 'amd.com/gpu.vram': '192G' } };
  const { inventory, caches } = inventoryOf({ nodes: [both], pools: [gpuPool('default'), AMD_POOL] });
  expect(offered(inventory)).toEqual([`amd: 4 x ${MI300X}`]);
  caches.pools.upsert(gpuPool('nvidia', asked));
  expect(offered(inventory)).toEqual([`nvidia: 8 x ${A100}`]);
});

test('a node of another maker is not for rent with a pool of NVIDIA GPUs alone', () => {
  const { inventory } = inventoryOf({ nodes: [amdNode('a'), gpuNode('n')], pools: [gpuPool('default')] });
  expect(offered(inventory)).toEqual([`default: 8 x ${A100}`]);
});

test('GPUs of a node that no pool selects count, whoever made them, and are not for rent', () => {
  const pools = [gpuPool('elsewhere', { nodeSelector: { zone: 'b' } })];
  const { inventory } = inventoryOf({ nodes: [amdNode('a')], pools });
  const view = inventory.viewOf('a');
  expect(view?.facts.pool).toBeUndefined();
  expect(view && gpuCounts(view, [])).toMatchObject([{ product: MI300X, total: 8, free: 8 }]);
  expect(offered(inventory)).toEqual([]);
});

test('what pods of others have is not for rent, and no two instances get the same GPU', () => {
  const { inventory } = inventoryOf({
    nodes: [amdNode('a')],
    pools: [AMD_POOL],
    pods: [gpuPod('foreign', 'a', { resource: 'amd.com/gpu', gpus: 3 })],
  });
  const request = placeRequest({ gpu: { product: MI300X, count: 2 } });
  const nodes: (string | undefined)[] = [];
  for (const name of ['one', 'two', 'three']) {
    const granted = inventory.grant(request);
    const place = 'place' in granted ? granted.place : undefined;
    nodes.push(place?.node);
    if (place === undefined) continue;
    const { resourceName, product } = place.offerClass;
    const claim = claimOn(place.node, { resourceName, product, gpuCount: 2 });
    inventory.assume(gpuInstance(name), claim, { gb: 1, persistent: false });
  }
  expect(nodes).toEqual(['a', 'a', undefined]);
  const view = inventory.viewOf('a');
  expect(view && gpuCounts(view, inventory.claimsOn('a'))).toMatchObject([
    { resourceName: 'amd.com/gpu', total: 8, rented: 4, others: 3, free: 1 },
  ]);
});

test('GPUs of others that the pool does not rent out take nothing from it', () => {
  const foreign = gpuPod('foreign', 'a', { resource: 'nvidia.com/gpu', gpus: 3 });
  const { inventory } = inventoryOf({ nodes: [amdNode('a')], pools: [AMD_POOL], pods: [foreign] });
  expect(offered(inventory)).toEqual([`amd: 8 x ${MI300X}`]);
});

test.each([
  ['amd.com/gpu', 8],
  ['amd.com/spx_nps1', 8],
  ['nvidia.com/gpu', 0],
  ['gpu.intel.com/i915', 0],
])('instances of a pool of AMD GPUs on a node with the taint %s: %i places', (key, want) => {
  const nodes = [amdNode('a', { taints: [{ key, effect: 'NoSchedule' }] })];
  const { inventory } = inventoryOf({ nodes, pools: [AMD_POOL] });
  expect(offered(inventory)).toEqual([`amd: ${want} x ${MI300X}`]);
});

test('shared GPUs of Intel come one by one and cost their part of a whole one', () => {
  const labels = { 'gpu.intel.com/product': 'Flex_170', 'gpu.intel.com/device.count': '1' };
  const node = deviceNode('i', labels, { allocatable: { 'gpu.intel.com/i915': '4' } });
  const prices = [{ product: '*', onDemand: '1.00', interruptible: '0.40' }];
  const { inventory } = inventoryOf({ nodes: [node], pools: [gpuPool('i', { devices: { preset: 'Intel' }, prices })] });
  expect(inventory.offers()).toMatchObject([
    { product: 'Flex_170', gpuCount: 1, isolation: 'time_sliced', available: 4, prices: { onDemand: '0.25' } },
  ]);
});

test('of what a node has the cache keeps devices of every maker and nothing else', () => {
  const devices = { 'amd.com/gpu': '8', 'habana.ai/gaudi': '1', 'hugepages-2Mi': '0' };
  const { status } = pruneNode(deviceNode('n', {}, { allocatable: devices }));
  expect(status?.capacity).toEqual({ 'amd.com/gpu': '8', 'habana.ai/gaudi': '1' });
});
