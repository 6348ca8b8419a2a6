import { expect, test } from 'vitest';
import { gpuNode, gpuPool, inventoryOf } from '../../support/inventory-world.ts';

test('the price for every other product is that of a whole GPU, and slices cost their part; a named price is that of a piece', () => {
  const mig = gpuNode('slices', { allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-3g.40gb': '1' } });
  const labels = { 'nvidia.com/gpu.product': 'Tesla-T4-SHARED', 'nvidia.com/gpu.replicas': '4' };
  const shared = gpuNode('shares', { labels, allocatable: { 'nvidia.com/gpu': '4' } });
  const pricesOf = (...prices: { product: string; onDemand: string; interruptible: string }[]) => {
    const { inventory } = inventoryOf({ nodes: [mig, shared], pools: [gpuPool('p', { prices })] });
    return inventory.offers().map(({ product, prices: { onDemand } }) => [product, onDemand]);
  };
  const other = { product: '*', onDemand: '2.80', interruptible: '0.70' };
  expect(pricesOf(other)).toEqual(
    expect.arrayContaining([
      ['NVIDIA-A100-SXM4-80GB-MIG-3g.40gb', '1.20'],
      ['Tesla-T4-SHARED', '0.70'],
    ]),
  );
  const named = { product: 'Tesla-T4-SHARED', onDemand: '0.06', interruptible: '0.05' };
  expect(pricesOf(other, named)).toContainEqual(['Tesla-T4-SHARED', '0.06']);
});

test('replicas of one pool that are other parts of a GPU are other offers, each at its own price', () => {
  const shared = (name: string, replicas: number) => {
    const labels = { 'nvidia.com/gpu.product': 'Tesla-T4-SHARED', 'nvidia.com/gpu.replicas': String(replicas) };
    return gpuNode(name, { labels, allocatable: { 'nvidia.com/gpu': String(replicas) } });
  };
  const prices = [{ product: '*', onDemand: '2.80', interruptible: '0.70' }];
  const nodes = [shared('halves', 2), shared('quarters', 4)];
  const { inventory } = inventoryOf({ nodes, pools: [gpuPool('p', { prices })] });
  const told = inventory.offers().map(({ available, prices: { onDemand } }) => [onDemand, available]);
  expect(Object.fromEntries(told)).toEqual({ '0.70': 4, '1.40': 2 });
});
