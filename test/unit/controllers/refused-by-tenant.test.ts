import { describe, expect, test } from 'vitest';
import { CREATED_BY } from '../../../src/resources/instances/gpu-instance.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import { budgetSchema } from '../../../src/resources/tenants/budget.ts';
import { A100, deviceNode, gpuNode, gpuPod, gpuPool } from '../../support/inventory-world.ts';
import { goldPolicy, policyWorld } from '../../support/policy-world.ts';

const L4 = 'NVIDIA-L4';
const HOUR = 3_600_000;
const usd = (max: string) => ({ costs: [{ currency: 'USD', max }] });
const price = (product: string, onDemand: string) => ({ product, onDemand, interruptible: onDemand });
const poolWith = (...prices: ReturnType<typeof price>[]) => gpuPool('default', { prices });

function key(name: string, max: string, resourceVersion = '1'): ApiKey {
  const spec = { hash: 'a'.repeat(64), prefix: '', displayName: '', scopes: [], revoked: false };
  const metadata = { namespace: 'default', name, uid: `uid-${name}`, resourceVersion };
  return { metadata, spec: { ...spec, limits: { budget: budgetSchema.parse(usd(max)) } } };
}

function worldOf(policy: object, nodes = [gpuNode('a')], pools = [poolWith(price('*', '1.00'))]) {
  const world = policyWorld(policy, undefined, undefined, { nodes, pools });
  // In the middle of a month.
  world.clock.jumpWall(10 * 24 * HOUR);
  const look = () => world.budgets.look('default');
  return {
    ...world,
    look,
    reason: (name: string) => world.ready(name)?.reason,
    message: (name: string) => world.ready(name)?.message ?? '',
    nodeOf: (name: string) => world.instance(name).status?.claim?.node,
    /** Runs those that were woken since, in order. */
    runWoken: async () => {
      const { line, tenantLine } = world.deps;
      const keys = [...world.woken.splice(0), ...line.ready(), ...line.outdated(), ...tenantLine.outdated()];
      for (const one of new Set(keys)) await world.reconcile(one.replace('default/', ''));
      return keys;
    },
  };
}

const FOREIGN = gpuPod('foreign', 'cheap', { gpus: 8 });

/** A node of GPUs that are free and cost more than the budget has, and one of GPUs that others have. */
function mixed() {
  const nodes = [gpuNode('dear'), gpuNode('cheap', { labels: { 'nvidia.com/gpu.product': L4 } })];
  const world = worldOf({ budget: usd('1.50') }, nodes, [poolWith(price(A100, '2.00'), price(L4, '1.00'))]);
  world.pods.upsert(FOREIGN);
  return world;
}

describe('an instance that a budget refuses', () => {
  test('says what stops it now, after what stopped it first was raised', async () => {
    const world = worldOf({ budget: usd('2.50') });
    const { create, reconcile, apiKeys, look, runWoken, message, policies, nodeOf } = world;
    apiKeys.upsert(key('ci', '0.50'));
    create('mine', {}, { [CREATED_BY]: 'key/ci' });
    await reconcile('mine');
    expect(message('mine')).toContain('APIKey ci');
    create('x');
    create('y');
    await reconcile('x');
    await reconcile('y');
    look();
    apiKeys.upsert(key('ci', '50', '2'));
    look();
    await runWoken();
    expect(message('mine')).toContain('The budget of this tenant');
    policies.upsert(goldPolicy({ budget: usd('50') }, '3'));
    look();
    await runWoken();
    expect(nodeOf('mine')).toBe('a');
  });

  test('starts when the place costs less', async () => {
    const world = worldOf({ budget: usd('1.50') }, [gpuNode('a')], [poolWith(price('*', '2.00'))]);
    const { create, reconcile, look, runWoken, reason, pools, nodeOf } = world;
    create('mine');
    await reconcile('mine');
    expect(reason('mine')).toBe('BudgetExceeded');
    const pool = poolWith(price('*', '1.00'));
    pools.upsert({ ...pool, metadata: { ...pool.metadata, resourceVersion: '2' } });
    await runWoken();
    look();
    await runWoken();
    expect(nodeOf('mine')).toBe('a');
  });

  test('starts when a cheaper place is free', async () => {
    const { create, reconcile, runWoken, pods, nodeOf } = mixed();
    create('mine');
    await reconcile('mine');
    expect(nodeOf('mine')).toBeUndefined();
    pods.remove(FOREIGN);
    await runWoken();
    expect(nodeOf('mine')).toBe('cheap');
  });

  test('takes what the budget has room for, while what costs less is in another currency', async () => {
    const nodes = [gpuNode('abroad', { labels: { of: 'abroad' } }), gpuNode('home', { labels: { of: 'home' } })];
    const pools = [
      gpuPool('abroad', { nodeSelector: { of: 'abroad' }, currency: 'EUR', prices: [price('*', '0.50')] }),
      gpuPool('home', { nodeSelector: { of: 'home' }, prices: [price('*', '1.00')] }),
    ];
    const { create, reconcile, nodeOf } = worldOf({ budget: usd('1.50') }, nodes, pools);
    create('mine');
    await reconcile('mine');
    expect(nodeOf('mine')).toBe('home');
  });

  test('and that waits for a place that it may have says why it takes no other', async () => {
    const world = mixed();
    world.create('mine');
    await world.reconcile('mine');
    expect(world.message('mine')).toMatch(/^No place for 1 x GPU is free.* The budget of this tenant .* has no room/);
    expect(world.reason('mine')).toBe('WaitingForCapacity');
  });
});

test('an instance that a ceiling refuses starts on GPUs that come to the fleet', async () => {
  const world = worldOf({ gpus: [{ product: A100, max: 0 }] });
  const { create, reconcile, runWoken, reason, nodes, nodeOf } = world;
  create('mine');
  await reconcile('mine');
  expect(reason('mine')).toBe('TenantLimit');
  nodes.upsert(gpuNode('b', { labels: { 'nvidia.com/gpu.product': L4 } }));
  await runWoken();
  expect(nodeOf('mine')).toBe('b');
});

describe('an instance that a quota refuses', () => {
  const AMD = { resource: 'amd.com/gpu', product: 'AMD_Instinct_MI300X' };
  const foreign = gpuPod('foreign', 'other', { gpus: 8, resource: AMD.resource });

  /** GPUs of two makers, and a quota that allows none of the first. */
  function world() {
    const other = deviceNode(
      'other',
      { 'amd.com/gpu.product-name': AMD.product },
      { allocatable: { [AMD.resource]: '8' } },
    );
    const prices = [price('*', '1.00')];
    const pools = [poolWith(price('*', '1.00')), gpuPool('amd', { devices: { preset: 'AMD' }, prices })];
    const made = worldOf({}, [gpuNode('a'), other], pools);
    const hard = { 'requests.nvidia.com/gpu': '0' };
    const status = { hard, used: { 'requests.nvidia.com/gpu': '0' } };
    made.quotas.upsert({ metadata: { name: 'q', namespace: 'default' }, spec: { hard }, status });
    return made;
  }

  test('takes other GPUs that are free, which the quota has room for', async () => {
    const { create, reconcile, nodeOf } = world();
    create('mine');
    await reconcile('mine');
    expect(nodeOf('mine')).toBe('other');
  });

  test('starts on other GPUs that become free', async () => {
    const { create, reconcile, runWoken, nodeOf, message, pods } = world();
    pods.upsert(foreign);
    create('mine');
    await reconcile('mine');
    expect(message('mine')).toContain('ResourceQuota q allows 0 requests.nvidia.com/gpu');
    pods.remove(foreign);
    await runWoken();
    expect(nodeOf('mine')).toBe('other');
  });
});
