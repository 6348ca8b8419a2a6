import { describe, expect, test } from 'vitest';
import { leaveLines } from '../../../src/controllers/gpu-instance/act/run.ts';
import { held } from '../../support/controller-world.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';
import { settle } from '../../support/fake-clock.ts';
import { policyWorld } from '../../support/policy-world.ts';

const POOL = gpuPool('default', { prices: [{ product: '*', onDemand: '1.00', interruptible: '1.00' }] });
const STORAGE = {
  provisioner: 'csi.example',
  metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
};
const GPU = 'requests.nvidia.com/gpu';
const TEN_DAYS_MS = 10 * 24 * 3_600_000;

/** Eight interruptible instances of another tenant have the one node, and this tenant has room for one of its own. */
function world(policy: object, hard: Record<string, string> = {}) {
  const made = policyWorld(policy, undefined, undefined, { pools: [POOL], storageClasses: [STORAGE] });
  // In the middle of a month.
  made.clock.jumpWall(TEN_DAYS_MS);
  made.quotas.upsert({
    metadata: { name: 'team', namespace: 'default' },
    spec: { hard },
    status: { hard, used: { [GPU]: '0' } },
  });
  const spots = Array.from({ length: 8 }, (_, index) => `spot-${index}`);
  for (const name of spots) {
    const status = { claim: claimOn('n'), incarnation: 1, podName: `${name}-1`, diskPersistent: true };
    const { metadata, ...spot } = held(gpuInstance(name, { type: 'Interruptible' }, status));
    made.instances.upsert({ ...spot, metadata: { ...metadata, namespace: 'other' } });
  }
  for (const name of ['a', 'b']) made.create(name, { gpu: { count: 1 } });
  const told = () => spots.filter((name) => made.instances.store.get(`other/${name}`)?.status?.ending !== undefined);
  return { ...made, told };
}

const ROOM_FOR_ONE: [string, string, object, Record<string, string>?][] = [
  ['a ceiling', 'TenantLimit', { gpus: [{ max: 1 }] }],
  ['a ceiling over disks', 'TenantLimit', { diskGb: 15 }],
  ['a budget', 'BudgetExceeded', { budget: { costs: [{ currency: 'USD', max: '1.50' }] } }],
  ['a quota', 'QuotaExceeded', {}, { [GPU]: '1' }],
];

describe.each(ROOM_FOR_ONE)('where %s has room for one more', (_what, reason, policy, hard) => {
  test('others end for one of two, one after the other', async () => {
    const { reconcile, told, ready } = world(policy, hard);
    await reconcile('a');
    await reconcile('b');
    expect(told()).toHaveLength(1);
    expect([ready('a')?.reason, ready('b')?.reason]).toEqual(['PlaceComing', reason]);
  });

  test('others end for one of two that ask at once', async () => {
    const { reconcile, told } = world(policy, hard);
    await Promise.all([reconcile('a'), reconcile('b')]);
    expect(told()).toHaveLength(1);
  });

  test('the one gets its place when they have ended', async () => {
    const { reconcile, told, claimed, instances } = world(policy, hard);
    await reconcile('a');
    await reconcile('b');
    const [victim = ''] = told();
    instances.remove(instances.store.get(`other/${victim}`) ?? expect.unreachable());
    await reconcile('b');
    await reconcile('a');
    expect(claimed().filter((name) => !name.startsWith('spot'))).toEqual(['a']);
  });

  test('the other is looked at again when the one gives up', async () => {
    const { reconcile, woken, budgets, instance, instances, line, deps, ready, told } = world(policy, hard);
    await reconcile('a');
    await reconcile('b');
    woken.length = 0;
    line.remove('default/a');
    deps.tenantLine.remove('default/a');
    instances.remove(instance('a'));
    budgets.look('default');
    expect(woken).toContain('default/b');
    await reconcile('b');
    // Nobody more ends for a tenant that has just taken a request back: it gets the place that is left all the same.
    expect([ready('b')?.reason, told()]).toEqual(['PlaceComing', [expect.any(String)]]);
  });

  test('the other is looked at again when the one gives up a place that no status said', async () => {
    const { reconcile, woken, budgets, instance, instances, deps } = world(policy, hard);
    await reconcile('a');
    await reconcile('b');
    const { metadata, spec, status } = instance('a');
    const unsaid = { ...status, reserved: undefined };
    instances.upsert({ metadata: { ...metadata, resourceVersion: '1000000' }, spec, status: unsaid });
    woken.length = 0;
    leaveLines({ deps, key: 'default/a' });
    budgets.look('default');
    expect(woken).toContain('default/b');
  });
});

test('an instance that waits for room for its disk is looked at again when another gets a place without one that lasts', async () => {
  const selecting = (tier: string, spec: object = {}) =>
    gpuPool(tier, { ...POOL.spec, nodeSelector: { tier }, ...spec });
  const h100 = { 'nvidia.com/gpu.product': 'NVIDIA-H100', tier: 'local' };
  const made = policyWorld({ diskGb: 15 }, undefined, undefined, {
    pools: [selecting('local', { disk: { maxGb: 100, storageClassName: 'none' } }), selecting('lasting')],
    nodes: [gpuNode('n', { labels: h100 }), gpuNode('m', { labels: { tier: 'lasting' } })],
    storageClasses: [STORAGE],
  });
  const claim = claimOn('n', { product: 'NVIDIA-H100', gpuCount: 8, pool: 'local' });
  const { metadata, ...spot } = held(
    gpuInstance('spot', { type: 'Interruptible' }, { claim, incarnation: 1, podName: 'spot-1' }),
  );
  made.instances.upsert({ ...spot, metadata: { ...metadata, namespace: 'other' } });
  made.create('a', { gpu: { count: 1, product: 'NVIDIA-H100' } });
  made.create('b', { gpu: { count: 1, product: A100 } });
  await made.reconcile('a');
  await made.reconcile('b');
  expect([made.ready('a')?.reason, made.ready('b')?.reason]).toEqual(['PlaceComing', 'TenantLimit']);
  made.instances.remove(made.instances.store.get('other/spot') ?? expect.unreachable());
  made.woken.length = 0;
  await made.reconcile('a');
  expect(made.instance('a').status).toMatchObject({ claim: { node: 'n' }, diskPersistent: false });
  expect(made.woken).toContain('default/b');
  await made.reconcile('b');
  expect(made.instance('b').status?.claim?.node).toBe('m');
});

test.each(ROOM_FOR_ONE.filter(([what]) => what !== 'a budget'))(
  'where %s has room for one more, the other is looked at again when nobody ends for the one after all',
  async (_what, reason, policy, hard = {}) => {
    const trying = Promise.withResolvers<void>();
    const made = policyWorld(policy, undefined, undefined, {
      nodes: [gpuNode('n'), gpuNode('m', { labels: { 'nvidia.com/gpu.product': 'NVIDIA-H100' } })],
      storageClasses: [STORAGE],
      tryCreate: () => trying.promise,
    });
    const status = { hard, used: { [GPU]: '0' } };
    made.quotas.upsert({ metadata: { name: 'team', namespace: 'default' }, spec: { hard }, status });
    const claim = claimOn('n', { gpuCount: 8 });
    const { metadata, ...spot } = held(
      gpuInstance('spot', { type: 'Interruptible' }, { claim, incarnation: 1, podName: 'spot-1' }),
    );
    made.instances.upsert({ ...spot, metadata: { ...metadata, namespace: 'other' } });
    made.create('a', { gpu: { count: 1, product: A100 } });
    made.create('b', { gpu: { count: 1, product: 'NVIDIA-H100' } });
    const run = made.reconcile('a');
    await settle();
    await made.reconcile('b');
    expect(made.ready('b')?.reason).toBe(reason);
    const cordoned = gpuNode('n', { cordoned: true });
    made.nodes.upsert({ ...cordoned, metadata: { ...cordoned.metadata, resourceVersion: '9' } });
    made.woken.length = 0;
    trying.resolve();
    await run;
    expect(made.ready('a')?.reason).toBe('WaitingForCapacity');
    expect(made.woken).toContain('default/b');
    await made.reconcile('b');
    expect(made.instance('b').status?.claim?.node).toBe('m');
  },
);
