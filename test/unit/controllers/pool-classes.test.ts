import { expect, test } from 'vitest';
import { PullAttempts } from '../../../src/controllers/images/attempts.ts';
import { PullNames } from '../../../src/controllers/images/pull-pod.ts';
import { listClasses, poolStatus, type PoolStatusDeps } from '../../../src/controllers/status/gpu-pool.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { gpuPoolStatusSchema } from '../../../src/resources/gpu-pool.ts';
import type { Offer } from '../../../src/inventory/offers.ts';
import { controllerWorld } from '../../support/controller-world.ts';
import { gpuNode, gpuPool } from '../../support/inventory-world.ts';

function offer(id: number): Offer {
  const gpu = { product: 'H100', gpuCount: id, memoryMb: 81_559, isolation: 'whole', migProfile: undefined } as const;
  const prices = { onDemand: `${id}.50`, interruptible: `${id}.10`, currency: 'USD' };
  return { id, ...gpu, available: 8 - (id % 8), simulated: false, prices } as Offer;
}

function offers(count: number): Offer[] {
  return Array.from({ length: count }, (_, index) => offer(index + 1));
}

test('the status of a pool lists its classes with price and free places', () => {
  const { offers: count, classes, summary } = listClasses(offers(2));
  expect([count, summary]).toEqual([2, '1 x H100 at 1.50: 7 free; 2 x H100 at 2.50: 6 free']);
  expect(classes[0]).toEqual({
    offerId: 1,
    product: 'H100',
    gpuCount: 1,
    memoryMb: 81_559,
    isolation: 'whole',
    simulated: false,
    free: 7,
    onDemand: '1.50',
    interruptible: '1.10',
  });
});

test('the lists are bounded, and what the API server takes', () => {
  const listed = listClasses(offers(100));
  expect([listed.offers, listed.classes.length]).toEqual([100, 64]);
  expect(listed.summary).toMatch(/^1 x H100.*; 4 x H100 at 4.50: 4 free; 96 more$/);
  expect(gpuPoolStatusSchema.safeParse(listed).success).toBe(true);
  expect(listClasses([])).toEqual({ offers: 0, classes: [], summary: '' });
});

test.each([
  [undefined, 'No node with GPUs has the labels of spec.nodeSelector.'],
  [{ preset: 'AMD' }, 'has whole GPUs under the name amd.com/gpu or amd.com/spx_nps1.'],
  [{ resourceName: 'habana.ai/gaudi' }, 'has whole GPUs under the name habana.ai/gaudi.'],
] as const)('a pool without nodes whose devices are %j says what it looks for', (devices, words) => {
  const pool = gpuPool('p', { nodeSelector: { zone: 'b' }, ...(devices && { devices }) });
  const { deps } = controllerWorld(undefined, undefined, { nodes: [gpuNode('n')] });
  const pulls = { attempts: new PullAttempts(deps.clock), names: new PullNames() };
  const status = poolStatus({ ...deps, pulls } as unknown as PoolStatusDeps).statusOf(pool, deps.clock.now());
  const ready = findCondition(status?.conditions, 'Ready');
  expect(ready).toMatchObject({ status: 'False', reason: 'NoNodes' });
  expect(ready?.message).toContain(words);
});
