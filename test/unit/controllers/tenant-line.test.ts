import { describe, expect, test } from 'vitest';
import type { StorageClass } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { tenantLimitSpecSchema } from '../../../src/resources/tenants/tenant-limit.ts';
import { held } from '../../support/controller-world.ts';
import { settle } from '../../support/fake-clock.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPod, gpuPool, placeRequest } from '../../support/inventory-world.ts';
import { goldPolicy, policyWorld } from '../../support/policy-world.ts';

const L4 = 'NVIDIA-L4';
const PRICES = [
  { product: A100, onDemand: '1.00', interruptible: '1.00' },
  { product: L4, onDemand: '1.00', interruptible: '1.00' },
];

/** Second of the minute in which an instance began to wait. */
const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;

/** Two nodes of eight GPUs, and a tenant with this policy, as another tenant has it too. */
function worldOf(policy: object, nodes = [gpuNode('m'), gpuNode('n')], storageClasses: StorageClass[] = []) {
  const pools = [gpuPool('default', { prices: PRICES })];
  const world = policyWorld(policy, undefined, undefined, { nodes, pools, storageClasses });
  world.namespaces.upsert({ metadata: { name: 'other', uid: 'uid-other', resourceVersion: '1' } });
  const find = (name: string, namespace: string): GpuInstance => {
    const found = world.instances.store.get(`${namespace}/${name}`);
    if (found === undefined) throw new Error(`there is no instance ${name}`);
    return found;
  };
  return {
    ...world,
    /** An instance that waits since a second. */
    waits: (name: string, second: number, spec: Partial<GpuInstance['spec']> = {}, namespace = 'default') => {
      const made = held(gpuInstance(name, spec, { waitingSince: at(second) }));
      world.instances.upsert({ ...made, metadata: { ...made.metadata, namespace } });
    },
    /** Its owner stops an instance, and its place is given back. */
    release: (name: string, namespace = 'default') => {
      const { metadata, spec } = find(name, namespace);
      const resourceVersion = `${Number(metadata.resourceVersion) + 100}`;
      world.instances.upsert({ metadata: { ...metadata, resourceVersion }, spec: { ...spec, powerState: 'Stopped' } });
    },
    nodeOf: (name: string, namespace = 'default') => find(name, namespace).status?.claim?.node,
    reasonOf: (name: string) => world.ready(name)?.reason,
  };
}

const EIGHT = { gpu: { count: 8 } };

describe('an instance that waits for a ceiling of its tenant', () => {
  /** `owner` has all that its tenant may have, `old` waits for that, and then `young` of another tenant for a place. */
  async function waiting() {
    const world = worldOf({ gpus: [{ max: 8 }] });
    const { waits, reconcile } = world;
    waits('owner', 1, EIGHT);
    waits('old', 2, EIGHT);
    waits('taker', 3, EIGHT, 'other');
    waits('young', 4, EIGHT, 'elsewhere');
    world.namespaces.upsert({ metadata: { name: 'elsewhere', uid: 'uid-elsewhere', resourceVersion: '1' } });
    await reconcile('owner');
    await reconcile('old');
    expect(world.reasonOf('old')).toBe('TenantLimit');
    await reconcile('taker', 'other');
    await reconcile('young', 'elsewhere');
    return world;
  }

  test('holds up nobody behind it', async () => {
    const { nodeOf } = await waiting();
    expect(nodeOf('taker', 'other')).toBeDefined();
  });

  test('stands in the line by its time as soon as the ceiling has room', async () => {
    const { release, line, reconcile, nodeOf, woken } = await waiting();
    release('owner');
    expect(woken).toEqual(['default/old']);
    expect(line.ready()).toEqual(['default/old']);
    // Its run takes longer than that of the one behind it.
    await reconcile('young', 'elsewhere');
    expect(nodeOf('young', 'elsewhere')).toBeUndefined();
    await reconcile('old');
    expect(nodeOf('old')).toBeDefined();
  });

  test('that has had its turn and found no place for another reason holds up nobody again', async () => {
    const { release, quotas, reconcile, nodeOf, reasonOf } = await waiting();
    release('owner');
    const hard = { 'requests.nvidia.com/gpu': '1' };
    const status = { hard, used: { 'requests.nvidia.com/gpu': '0' } };
    quotas.upsert({ metadata: { name: 'q', namespace: 'default' }, spec: { hard }, status });
    await reconcile('old');
    expect(reasonOf('old')).toBe('QuotaExceeded');
    await reconcile('young', 'elsewhere');
    expect(nodeOf('young', 'elsewhere')).toBeDefined();
  });

  test('that cannot be looked at holds up nobody', async () => {
    const { release, deps, reconcile, nodeOf } = await waiting();
    release('owner');
    const reads = { of: (of: string) => (of === 'default' ? Promise.reject(new Error('no')) : Promise.resolve()) };
    deps.claimReads = reads as unknown as typeof deps.claimReads;
    await expect(reconcile('old')).rejects.toThrow('no');
    await reconcile('young', 'elsewhere');
    expect(nodeOf('young', 'elsewhere')).toBeDefined();
  });

  test('comes before a younger one of its tenant, also while it is being looked at', async () => {
    const { waits, release, deps, reconcile, nodeOf, reasonOf } = worldOf({ gpus: [{ max: 8 }] });
    waits('owner', 1, EIGHT);
    waits('old', 2, EIGHT);
    waits('young', 3, EIGHT);
    for (const name of ['owner', 'old', 'young']) await reconcile(name);
    expect([reasonOf('old'), reasonOf('young')]).toEqual(['TenantLimit', 'TenantLimit']);
    const reading = Promise.withResolvers<void>();
    const { claimReads } = deps;
    deps.claimReads = { of: () => reading.promise } as unknown as typeof claimReads;
    const looking = reconcile('old');
    await settle();
    deps.claimReads = claimReads;
    release('owner');
    await reconcile('young');
    expect(nodeOf('young')).toBeUndefined();
    reading.resolve();
    await looking;
    expect(nodeOf('old')).toBeDefined();
  });

  test('comes before those behind it also while one of its tenant that waits longer has no place', async () => {
    const l4 = (count: number) => ({ gpu: { count, product: L4 } });
    const nodes = [
      gpuNode('a'),
      ...['b', 'c'].map((name) => gpuNode(name, { labels: { 'nvidia.com/gpu.product': L4 } })),
    ];
    const { waits, release, reconcile, nodeOf, reasonOf, namespaces } = worldOf({ gpus: [{ max: 8 }] }, nodes);
    for (const name of ['third', 'elsewhere'])
      namespaces.upsert({ metadata: { name, uid: `uid-${name}`, resourceVersion: '1' } });
    waits('owner', 1, l4(8));
    waits('older', 2, { gpu: { count: 2, product: A100 } });
    waits('old', 3, l4(8));
    for (const name of ['owner', 'older', 'old']) await reconcile(name);
    expect([reasonOf('older'), reasonOf('old')]).toEqual(['TenantLimit', 'TenantLimit']);
    waits('taker', 4, { gpu: { count: 8, product: A100 } }, 'other');
    waits('another', 4, l4(8), 'third');
    waits('young', 5, l4(8), 'elsewhere');
    await reconcile('taker', 'other');
    await reconcile('another', 'third');
    await reconcile('young', 'elsewhere');
    expect(nodeOf('young', 'elsewhere')).toBeUndefined();
    release('owner');
    await reconcile('young', 'elsewhere');
    expect(nodeOf('young', 'elsewhere')).toBeUndefined();
    await reconcile('old');
    expect(nodeOf('old')).toBeDefined();
  });

  test('is not woken for what others leave for its tenant, also before a status says so, and is when that is left', async () => {
    const { waits, reconcile, instances, inventory, line, deps, reasonOf, woken } = worldOf({ gpus: [{ max: 8 }] });
    waits('owner', 1, EIGHT);
    waits('old', 2, EIGHT);
    const owner = instances.store.get('default/owner') ?? expect.unreachable();
    const request = placeRequest(EIGHT);
    const granted = inventory.grant(request);
    if (!('place' in granted)) throw new Error(granted.message);
    line.add('default/owner', owner, request);
    line.hold('default/owner', { place: granted.place, takes: {} });
    await reconcile('old');
    expect(reasonOf('old')).toBe('TenantLimit');
    deps.tenantLine.serve('default');
    expect(woken).toEqual([]);
    instances.remove(owner);
    await reconcile('owner');
    expect(woken).toEqual(['default/old']);
  });

  test('is woken also when the place that another one is to get becomes one of another kind', async () => {
    const nodes = [gpuNode('a'), gpuNode('b', { labels: { 'nvidia.com/gpu.product': L4 } })];
    const { waits, reconcile, instances, reasonOf, woken } = worldOf({ gpus: [{ product: A100, max: 8 }] }, nodes);
    const reserved = { pool: 'default', node: 'a', product: A100, resourceName: 'nvidia.com/gpu', gpuCount: 8 };
    const owner = held(gpuInstance('owner', EIGHT, { waitingSince: at(1), reserved }));
    instances.upsert(owner);
    waits('old', 2, { gpu: { count: 8, product: A100 } });
    await reconcile('old');
    expect(reasonOf('old')).toBe('TenantLimit');
    instances.upsert({
      ...owner,
      metadata: { ...owner.metadata, resourceVersion: '9' },
      status: { incarnation: 1, claim: claimOn('b', { product: L4, gpuCount: 8 }) },
    });
    expect(woken).toEqual(['default/old']);
  });

  test.each(['is stopped', 'is deleted', 'is refused by a quota'])(
    'is woken when one before it that was let go %s',
    async (how) => {
      const { waits, release, reconcile, instances, quotas, nodeOf, woken } = worldOf({ gpus: [{ max: 4 }] });
      const hard = { 'requests.nvidia.com/gpu': '2' };
      const status = { hard, used: { 'requests.nvidia.com/gpu': '0' } };
      const quota = { metadata: { name: 'q', namespace: 'default' }, spec: { hard }, status };
      waits('owner', 1, { gpu: { count: 4 } });
      waits('old', 2, { gpu: { count: 4 } });
      waits('young', 3, { gpu: { count: 2 } });
      for (const name of ['owner', 'old', 'young']) await reconcile(name);
      release('owner');
      expect(woken).toEqual(['default/old']);
      const old = instances.store.get('default/old') ?? held(gpuInstance('old'));
      const { metadata, spec } = old;
      if (how === 'is deleted') instances.remove(old);
      else if (how === 'is refused by a quota') quotas.upsert(quota);
      else
        instances.upsert({
          ...old,
          metadata: { ...metadata, resourceVersion: '99' },
          spec: { ...spec, powerState: 'Stopped' },
        });
      await reconcile('old');
      expect(woken).toEqual(['default/old', 'default/young']);
      await reconcile('young');
      expect(nodeOf('young')).toBeDefined();
    },
  );

  test.each([
    ['raises the ceiling', { gpus: [{ max: 4 }] }, { gpus: [{ max: 8 }] }],
    ['lifts the ceiling', { gpus: [{ max: 4 }] }, {}],
    ['raises that over disks', { diskGb: 5 }, { diskGb: 500 }],
    ['lifts that over disks', { diskGb: 5 }, {}],
    ['lifts the budget', { budget: { gpuHours: 4 } }, {}],
  ])('comes before a younger one that asks in the moment in which the operator %s', async (_what, policy, then) => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    const storage = { metadata: { name: 'fast', annotations }, provisioner: 'example.com/disks' };
    const world = worldOf(policy, [gpuNode('m')], [storage]);
    const { waits, reconcile, policies, nodeOf } = world;
    waits('old', 2, EIGHT);
    await reconcile('old');
    expect(['TenantLimit', 'BudgetExceeded']).toContain(world.reasonOf('old'));
    policies.upsert(goldPolicy(then, '3'));
    waits('young', 3, { gpu: { count: 4 } });
    await reconcile('young');
    expect(nodeOf('young')).toBeUndefined();
    await reconcile('old');
    expect(nodeOf('old')).toBeDefined();
  });
});

test('instances that wait for their ceilings are woken by their time, not by their last look', async () => {
  const { waits, reconcile, limits, policies, woken } = worldOf({ gpus: [{ max: 0 }] });
  for (const [name, second] of [
    ['third', 3],
    ['first', 1],
    ['second', 2],
  ] as const) {
    waits(name, second);
    await reconcile(name);
  }
  policies.upsert(goldPolicy({ gpus: [{ max: 9 }] }, '3'));
  const spec = tenantLimitSpecSchema.parse({ policies: ['gold'] });
  limits.upsert({ metadata: { namespace: 'default', name: 'berth', resourceVersion: '3' }, spec });
  expect([...new Set(woken)]).toEqual(['default/first', 'default/second', 'default/third']);
});

test('what a TenantLimit says of a budget wakes nobody that waits for a ceiling', async () => {
  const { waits, reconcile, limits, woken } = worldOf({ gpus: [{ max: 0 }] });
  const spec = tenantLimitSpecSchema.parse({ policies: ['gold'], gpus: [{ max: 0 }] });
  const put = (resourceVersion: string, status?: object): void =>
    limits.upsert({
      metadata: { namespace: 'default', name: 'berth', resourceVersion },
      spec,
      ...(status && { status }),
    });
  put('1');
  waits('one', 1);
  await reconcile('one');
  woken.length = 0;
  put('2', { policies: ['gold'] });
  expect(woken).toEqual([]);
});

describe('an instance that several products serve', () => {
  const nodes = [gpuNode('a'), gpuNode('b', { labels: { 'nvidia.com/gpu.product': L4 } })];
  const one = (product: string) => ({ gpu: { product, count: 1 } });

  test.each([A100, L4])('and whose ceilings have room for none waits for each of them: %s', async (product) => {
    const ceilings = [A100, L4].map((name) => ({ product: name, max: 1 }));
    const { waits, reconcile, release, reasonOf, woken, line, instance } = worldOf({ gpus: ceilings }, nodes);
    waits(A100, 1, one(A100));
    waits(L4, 2, one(L4));
    await reconcile(A100);
    await reconcile(L4);
    waits('any', 3);
    await reconcile('any');
    expect(reasonOf('any')).toBe('TenantLimit');
    release(product);
    expect(woken).toEqual(['default/any']);
    expect(line.ready()).toEqual(['default/any']);
    await reconcile('any');
    expect(instance('any').status?.claim?.product).toBe(product);
  });

  test.each([A100, L4])('comes first at the one place that its tenant gives back, of %s', async (product) => {
    const { waits, reconcile, release, reasonOf, nodeOf, namespaces, pods } = worldOf({ gpus: [{ max: 1 }] }, nodes);
    namespaces.upsert({ metadata: { name: 'elsewhere', uid: 'uid-elsewhere', resourceVersion: '1' } });
    waits('owner', 1, one(product));
    await reconcile('owner');
    waits('any', 3);
    waits('young', 4, {}, 'elsewhere');
    await reconcile('any');
    expect(reasonOf('any')).toBe('TenantLimit');
    const own = product === A100 ? 'a' : 'b';
    for (const node of ['a', 'b']) pods.upsert(gpuPod(`foreign-${node}`, node, { gpus: node === own ? 7 : 8 }));
    await reconcile('young', 'elsewhere');
    release('owner');
    await reconcile('young', 'elsewhere');
    expect(nodeOf('young', 'elsewhere')).toBeUndefined();
    await reconcile('any');
    expect(nodeOf('any')).toBeDefined();
  });
});

test('an instance that others in line come before waits for its ceilings too', async () => {
  const nodes = [gpuNode('a'), gpuNode('b', { labels: { 'nvidia.com/gpu.product': L4 } })];
  const { waits, reconcile, release, pods, nodeOf, woken } = worldOf({ gpus: [{ product: A100, max: 1 }] }, nodes);
  waits('own', 1, { gpu: { product: A100, count: 1 } });
  await reconcile('own');
  pods.upsert(gpuPod('foreign', 'b', { gpus: 8 }));
  waits('first', 2, { gpu: { product: L4, count: 8 } }, 'other');
  await reconcile('first', 'other');
  pods.remove(gpuPod('foreign', 'b', { gpus: 8 }));
  waits('any', 3);
  await reconcile('any');
  expect(nodeOf('any')).toBeUndefined();
  await reconcile('first', 'other');
  release('own');
  expect(woken).toEqual(['default/any']);
  await reconcile('any');
  expect(nodeOf('any')).toBe('a');
});

describe('an instance that waits for a quota', () => {
  const quota = (gpus: number, resourceVersion: string) => {
    const hard = { 'requests.nvidia.com/gpu': String(gpus) };
    const status = { hard, used: { 'requests.nvidia.com/gpu': '0' } };
    return { metadata: { name: 'q', namespace: 'default', resourceVersion }, spec: { hard }, status };
  };

  async function waiting() {
    const world = worldOf({}, [gpuNode('n')]);
    const { waits, reconcile, quotas, reasonOf } = world;
    quotas.upsert(quota(1, '1'));
    waits('large', 1, EIGHT);
    waits('old', 2, { gpu: { count: 4 } });
    await reconcile('large');
    await reconcile('old');
    expect([reasonOf('large'), reasonOf('old')]).toEqual(['QuotaExceeded', 'QuotaExceeded']);
    waits('young', 3, EIGHT, 'other');
    return world;
  }

  test('holds up nobody, and stands in the line by its time as soon as the quota has room', async () => {
    const { reconcile, quotas, nodeOf, line, woken } = await waiting();
    quotas.upsert(quota(4, '2'));
    expect([woken, line.ready()]).toEqual([['default/old'], ['default/old']]);
    await reconcile('young', 'other');
    expect(nodeOf('young', 'other')).toBeUndefined();
    await reconcile('old');
    expect(nodeOf('old')).toBe('n');
  });

  test('and that has no room yet holds up nobody', async () => {
    const { reconcile, quotas, nodeOf, line } = await waiting();
    quotas.upsert(quota(3, '2'));
    expect(line.ready()).toEqual([]);
    await reconcile('young', 'other');
    expect(nodeOf('young', 'other')).toBe('n');
  });
});

describe('an instance that waits for a budget', () => {
  const HOUR = 3_600_000;
  const budget = (max: string) => ({ budget: { costs: [{ currency: 'USD', max }] } });

  async function waiting() {
    const world = worldOf(budget('8.50'));
    const { waits, reconcile, reasonOf, clock } = world;
    // In the middle of a month.
    clock.jumpWall(10 * 24 * HOUR);
    waits('owner', 1, EIGHT);
    waits('old', 2, EIGHT);
    await reconcile('owner');
    await reconcile('old');
    expect(reasonOf('old')).toBe('BudgetExceeded');
    waits('young', 3, { gpu: { count: 4 } });
    return world;
  }

  test('stands in the line by its time as soon as a look finds room', async () => {
    const { release, budgets, line, woken } = await waiting();
    release('owner');
    budgets.look('default');
    expect([woken, line.ready()]).toEqual([['default/old'], ['default/old']]);
  });

  test('comes before a younger one of its tenant that asks before that look', async () => {
    const { release, reconcile, nodeOf } = await waiting();
    release('owner');
    await reconcile('young');
    expect(nodeOf('young')).toBeUndefined();
    await reconcile('old');
    expect(nodeOf('old')).toBeDefined();
  });
});

describe('a tenant that has many in line, and is at its limit', () => {
  const full = (gpus: number, resourceVersion: string) => {
    const { metadata, ...pod } = gpuPod('foreign', 'n', { gpus });
    return { ...pod, metadata: { ...metadata, resourceVersion } };
  };
  const WAITERS = ['a', 'b', 'c', 'd', 'e'];

  /** They all wait for GPUs, then another tenant. Two GPUs come free, of which the tenant may have one. */
  async function line(policy: object, before: (world: ReturnType<typeof worldOf>) => void = () => undefined) {
    const world = worldOf(policy, [gpuNode('n')]);
    const { waits, reconcile, pods } = world;
    pods.upsert(full(8, '1'));
    world.clock.jumpWall(10 * 24 * 3_600_000);
    before(world);
    WAITERS.forEach((name, index) => waits(name, index));
    waits('young', 9, {}, 'other');
    for (const name of WAITERS) await reconcile(name);
    await reconcile('young', 'other');
    pods.upsert(full(6, '2'));
    await reconcile('a');
    expect(world.nodeOf('a')).toBe('n');
    world.woken.length = 0;
    return world;
  }

  test.each([
    ['a ceiling', { gpus: [{ max: 1 }] }, 'TenantLimit'],
    ['a budget', { budget: { costs: [{ currency: 'USD', max: '1.50' }] } }, 'BudgetExceeded'],
  ])('%s: one turn shows that, and then nobody of them holds up another tenant', async (_, policy, reason) => {
    const world = await line(policy);
    await world.reconcile('b');
    expect(world.reasonOf('b')).toBe(reason);
    expect(world.line.ready()).toEqual(['other/young']);
    expect(world.woken).toEqual(['default/c', 'default/d', 'default/e']);
    for (const name of ['c', 'd', 'e']) await world.reconcile(name);
    expect(['c', 'd', 'e'].map((name) => world.reasonOf(name))).toEqual([reason, reason, reason]);
    await world.reconcile('young', 'other');
    expect(world.nodeOf('young', 'other')).toBe('n');
  });

  test('those that ask for what it may still have stay where they are', async () => {
    const world = await line({ gpus: [{ max: 3 }] }, ({ waits }) => waits('x', 0, { gpu: { count: 4 } }));
    await world.reconcile('x');
    world.pods.upsert(full(3, '3'));
    await world.reconcile('x');
    expect(world.reasonOf('x')).toBe('TenantLimit');
    expect(world.line.ready()).toEqual(['default/b', 'default/c', 'default/d', 'default/e']);
  });
});
