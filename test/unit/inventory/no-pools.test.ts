import { expect, test } from 'vitest';
import { claimOn, gpuInstance, gpuNode, gpuPool, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

const PRICES = [{ product: '*', onDemand: '2.00', interruptible: '1.00' }];

test('when the last GPUPool is gone, nothing is offered or granted, and what is rented stays rented', () => {
  const { inventory, caches } = inventoryOf({
    nodes: [gpuNode('n')],
    pools: [gpuPool('paid', { prices: PRICES })],
    instances: [gpuInstance('a', {}, { claim: claimOn('n', { pool: 'paid', pricePerHour: '2.00' }) })],
  });
  expect(inventory.grant(placeRequest())).toMatchObject({ place: { node: 'n' } });
  caches.pools.remove(gpuPool('paid'));
  expect(inventory.offers()).toEqual([]);
  expect(inventory.hasPlace(placeRequest())).toBe(false);
  expect(inventory.grant(placeRequest())).not.toHaveProperty('place');
  expect(inventory.preempt(placeRequest())).toBeUndefined();
  expect(inventory.claimsOn('n')).toMatchObject([{ pricePerHour: '2.00' }]);
  expect(inventory.heldBy('default')).toMatchObject([{ pool: 'paid', gpus: 1 }]);
});

test('nodes that come before their GPUPool are not for rent until it comes', () => {
  const { inventory, caches } = inventoryOf({ pools: [] });
  caches.nodes.upsert({ ...gpuNode('n'), metadata: { ...gpuNode('n').metadata, resourceVersion: '101' } });
  expect(inventory.offers()).toEqual([]);
  caches.pools.upsert({ ...gpuPool('paid', { prices: PRICES }), metadata: { name: 'paid', resourceVersion: '102' } });
  expect(inventory.offers().map(({ prices }) => prices.onDemand)).toContain('2.00');
});
