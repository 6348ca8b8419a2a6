import { expect } from 'vitest';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { type Budget, isBudget } from '../../../src/resources/tenants/budget.ts';
import { TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES } from '../../../src/resources/tenants/tenant-policy.ts';
import { waitFor } from '../../support/wait-for.ts';
import { INSTANCE_IMAGE } from './images.ts';
import type { Rented } from './rented.ts';
import type { World } from './world.ts';

const NAME = 'metered';
const MINUTE = 60_000;
/** A dollar each second. */
const PRICES = [{ product: '*', onDemand: '3600', interruptible: '3600' }];

function budgetOf(max: string): Budget {
  return { costs: [{ currency: 'USD', max }] };
}

/** Lets a tenant spend its budget on a GPU, beside a neighbour. */
export async function tryBudget({ client }: World, neighbour: Rented): Promise<void> {
  const before = await neighbour.identity();
  await client.patch(GPU_POOLS, { name: 'default' }, { spec: { currency: 'USD', prices: PRICES } }, { type: 'merge' });
  const policy = {
    metadata: { name: NAME },
    spec: { namespaceLabels: { 'example.com/tier': NAME }, budget: budgetOf('3600') },
  };
  await client.apply(TENANT_POLICIES, policy, { fieldManager: 'e2e' });
  const labels = { 'berth.dev/tenant': 'true', 'example.com/tier': NAME };
  await client.create(NAMESPACES, { metadata: { name: NAME, labels } });
  const limit = { namespace: NAME, name: 'berth' };
  await waitFor('the budget holds', async () =>
    isBudget((await client.get(TENANT_LIMITS, limit).catch(() => undefined))?.spec.budget),
  );
  const rent = (name: string): Promise<unknown> => {
    const spec = { image: INSTANCE_IMAGE, gpu: { count: 1 }, diskGb: 1 };
    const instance = { metadata: { namespace: NAME, name }, spec } as unknown as GpuInstance;
    return client.apply(GPU_INSTANCES, instance, { fieldManager: 'e2e' });
  };
  const ready = async (name: string): Promise<string | undefined> => {
    const { status } = await client.get(GPU_INSTANCES, { namespace: NAME, name });
    return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
  };
  await rent('spender');
  await waitFor('the spender runs', async () => (await ready('spender')) === 'Running', 2 * MINUTE);
  // The operator leaves it a few dollars.
  await client.patch(TENANT_POLICIES, { name: NAME }, { spec: { budget: budgetOf('10') } }, { type: 'merge' });
  await waitFor('the spender is stopped', async () => (await ready('spender')) === 'BudgetSpent', MINUTE);
  await rent('late');
  await waitFor('no other start', async () => (await ready('late')) === 'BudgetExceeded');
  const { status } = await client.get(TENANT_LIMITS, limit);
  expect(status?.budget?.percent).toBeGreaterThanOrEqual(100);
  expect(await neighbour.identity()).toEqual(before);
  for (const name of ['spender', 'late']) await client.delete(GPU_INSTANCES, { namespace: NAME, name });
  await client.delete(TENANT_POLICIES, { name: NAME });
}
