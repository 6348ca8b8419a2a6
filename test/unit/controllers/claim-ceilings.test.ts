import { describe, expect, it, test } from 'vitest';
import { gpuRefusal, imageRefusal } from '../../../src/inventory/ceilings.ts';
import { WaitingLine } from '../../../src/controllers/gpu-instance/waiting-line.ts';
import { KubeError } from '../../../src/kube/errors.ts';
import { tenantLimitSpecSchema } from '../../../src/resources/tenants/tenant-limit.ts';
import { held } from '../../support/controller-world.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPod, gpuPool } from '../../support/inventory-world.ts';
import { goldPolicy, policyWorld } from '../../support/policy-world.ts';
import { settle } from '../../support/fake-clock.ts';

const ONE_GPU = { gpus: [{ max: 1 }] };

/** A world in which the tenant has these ceilings, and may give back what it has. */
function limited(...of: Parameters<typeof policyWorld>) {
  const world = policyWorld(...of);
  return {
    ...world,
    /** What the watch shows when the claim of an instance was given back. */
    release: (name: string) => {
      const { metadata, spec: own } = world.instance(name);
      world.instances.upsert({
        metadata: { ...metadata, resourceVersion: `${Number(metadata.resourceVersion) + 100}` },
        spec: { ...own, powerState: 'Stopped' },
        status: {},
      });
    },
  };
}

describe('a ceiling over GPUs', () => {
  const limit = tenantLimitSpecSchema.parse({
    policies: ['gold', 'all'],
    gpus: [{ max: 8 }, { pool: 'a', max: 4 }, { pool: 'a', product: 'H100', max: 2 }, { product: 'L40S', max: 0 }],
  });
  const share = (pool: string, product: string, gpus: number) => ({ pool, product, gpus });

  it.each([
    [[], share('a', 'H100', 2), undefined],
    [[], share('a', 'H100', 3), '2 GPUs of product H100 in pool a'],
    [[share('a', 'A100', 3)], share('a', 'H100', 1), undefined],
    [[share('a', 'A100', 3)], share('a', 'H100', 2), '4 GPUs in pool a'],
    [[share('b', 'A100', 7)], share('a', 'H100', 1), undefined],
    [[share('b', 'A100', 7)], share('a', 'H100', 2), '8 GPUs at once'],
    [[], share('b', 'L40S', 1), '0 GPUs of product L40S'],
  ])('beside %j the tenant gets %j: %s', (own, wanted, expected) => {
    const refusal = gpuRefusal(limit, own, wanted);
    if (expected === undefined) expect(refusal).toBeUndefined();
    else {
      expect(refusal?.message).toContain(expected);
      expect(refusal?.message).toContain('The operator can change gpus in TenantPolicy gold and TenantPolicy all.');
    }
  });
});

test('a refused image is named in full, with what is allowed and who can change that', () => {
  const limit = tenantLimitSpecSchema.parse({ policies: ['gold'], images: ['ghcr.io/acme/*'] });
  expect(imageRefusal(limit, 'ghcr.io/acme/app:1')).toBeUndefined();
  expect(imageRefusal(limit, 'debian:12')?.message).toBe(
    'The ceiling images allows this tenant ghcr.io/acme/*, and not docker.io/library/debian:12. Choose another image. The operator can change images in TenantPolicy gold.',
  );
});

describe('the claim', () => {
  it('two instances at once do not pass a ceiling of one, while the first claim is still being written', async () => {
    const writing = Promise.withResolvers<void>();
    const { create, reconcile, claimed, ready } = limited(ONE_GPU, undefined, (path) =>
      path === '/status' ? writing.promise : Promise.resolve(),
    );
    create('a');
    create('b');
    const runs = [reconcile('a'), reconcile('b')];
    await settle();
    writing.resolve();
    await Promise.allSettled(runs);
    expect(claimed()).toEqual(['a']);
    expect(ready('b')).toMatchObject({
      reason: 'TenantLimit',
      message:
        'The ceiling gpus allows this tenant 1 GPUs at once. It holds 1, and this instance needs 1. Stop another instance. The operator can change gpus in TenantPolicy gold.',
    });
  });

  it('of a new leader counts what the leader before granted and the cache does not show yet', async () => {
    const { create, reconcile, claimed, ready, unseen } = limited(ONE_GPU);
    const granted = held(gpuInstance('old', {}, { claim: claimOn('n') }));
    unseen.push({ ...granted, metadata: { ...granted.metadata, resourceVersion: '900' } });
    create('new');
    await reconcile('new');
    expect(claimed()).toEqual([]);
    expect(ready('new')?.message).toContain('It holds 1');
  });

  it('gives room back when its write fails, and wakes the instance that had none', async () => {
    const lost = new KubeError({ message: 'changed', status: 409, reason: 'Conflict' });
    const writing = Promise.withResolvers<void>();
    let writes = 0;
    const { create, reconcile, claimed, woken } = limited(ONE_GPU, undefined, (path) => {
      if (path !== '/status') return Promise.resolve();
      writes += 1;
      return writes === 1 ? writing.promise : Promise.resolve();
    });
    create('a');
    create('b');
    const first = reconcile('a');
    await settle();
    await reconcile('b');
    expect(claimed()).toEqual([]);
    writing.reject(lost);
    await expect(first).rejects.toBe(lost);
    expect(woken).toEqual(['default/b']);
    await reconcile('b');
    expect(claimed()).toEqual(['b']);
  });

  it('wakes as many of the tenant as have room, the oldest first, and nobody else', async () => {
    const { create, reconcile, release, woken, claimed } = limited({ gpus: [{ max: 2 }] });
    create('owner', { gpu: { count: 2 } });
    await reconcile('owner');
    for (const name of ['c', 'a', 'b']) {
      create(name);
      await reconcile(name);
    }
    expect(woken).toEqual([]);
    release('owner');
    expect(woken).toEqual(['default/a', 'default/b']);
    await reconcile('a');
    await reconcile('b');
    expect(claimed()).toEqual(['a', 'b']);
  });

  it('an instance for which there is no place leaves the room of its tenant to the next', async () => {
    const { create, reconcile, release, woken, instances, claimed } = limited({ gpus: [{ max: 4 }] });
    create('owner', { gpu: { count: 4 } });
    await reconcile('owner');
    create('a', { gpu: { count: 4 } });
    create('b', { gpu: { count: 1 } });
    await reconcile('a');
    await reconcile('b');
    // Another tenant takes GPUs of the node, so that there is no place for four.
    for (const [name, gpuCount] of [
      ['x', 4],
      ['y', 2],
    ] as const) {
      const other = gpuInstance(name, {}, { claim: claimOn('n', { gpuCount }) });
      instances.upsert({ ...other, metadata: { ...other.metadata, namespace: 'elsewhere' } });
    }
    release('owner');
    expect(woken.splice(0)).toEqual(['default/a', 'default/b']);
    await reconcile('b');
    expect(claimed()).toContain('b');
    await reconcile('a');
    expect(claimed()).not.toContain('a');
  });

  describe('where several products fit', () => {
    const L4 = 'NVIDIA-L4';
    const nodes = [gpuNode('a'), gpuNode('b', { labels: { 'nvidia.com/gpu.product': L4 } })];
    const prices = [
      { product: A100, onDemand: '1', interruptible: '1' },
      { product: L4, onDemand: '2', interruptible: '2' },
    ];
    const ceilings = { gpus: [{ product: A100, max: 1 }] };
    const world = () => limited(ceilings, undefined, undefined, { nodes, pools: [gpuPool('p', { prices })] });
    const productOf = (made: ReturnType<typeof world>, name: string) =>
      made.instances.store.get(`default/${name}`)?.status?.claim?.product;

    it('takes what the ceilings allow, although another is cheaper', async () => {
      const made = world();
      for (const name of ['one', 'two']) {
        made.create(name);
        await made.reconcile(name).catch(() => undefined);
      }
      expect([productOf(made, 'one'), productOf(made, 'two')]).toEqual([A100, L4]);
    });

    it('waits in line for what is allowed and full, holds up no other for what is not, and is woken by both', async () => {
      const made = world();
      made.create('one');
      await made.reconcile('one').catch(() => undefined);
      made.pods.upsert({ ...gpuPod('other', 'b', { gpus: 8 }) });
      made.create('two');
      await made.reconcile('two');
      expect(made.ready('two')?.reason).toBe('WaitingForCapacity');
      expect(made.line.ready()).toEqual([]);
      expect(made.line.before('default/x', gpuInstance('x'))).toBeUndefined();
      made.release('one');
      expect(made.woken).toContain('default/two');
      made.pods.remove({ ...gpuPod('other', 'b', { gpus: 8 }) });
      expect(made.line.ready()).toEqual(['default/two']);
    });

    it('says that the ceiling refuses where none is left', async () => {
      const made = world();
      made.create('one', { gpu: { product: A100, count: 1 } });
      made.create('two', { gpu: { product: A100, count: 1 } });
      for (const name of ['one', 'two']) await made.reconcile(name).catch(() => undefined);
      expect(made.ready('two')?.reason).toBe('TenantLimit');
    });
  });

  it('a refused image waits for a change of the ceilings, and takes no place', async () => {
    const { create, reconcile, claimed, ready, policies, limits, woken, release } = limited({ images: ['r.io/*'] });
    create('a');
    create('own', { image: 'r.io/app' });
    await reconcile('a');
    await reconcile('own');
    expect([claimed(), ready('a')?.reason]).toEqual([['own'], 'TenantLimit']);
    expect(ready('a')?.message).toContain('not docker.io/library/debian:12');
    release('own');
    expect(woken).toEqual([]);
    policies.upsert(goldPolicy({ images: ['*'] }, '3'));
    limits.upsert({
      metadata: { namespace: 'default', name: 'berth', resourceVersion: '3' },
      spec: tenantLimitSpecSchema.parse({ policies: ['gold'] }),
    });
    expect(woken).toEqual(['default/a']);
    await reconcile('a');
    expect(claimed()).toEqual(['a']);
  });

  it('a ceiling that is lowered ends nothing that runs, and holds for the next start', async () => {
    const { create, reconcile, claimed, policies, pods, ready } = limited({ gpus: [{ max: 4 }] });
    create('a', { gpu: { count: 4, product: A100 } });
    await reconcile('a');
    pods.upsert(gpuPod('a-1', 'n', { gpus: 4, instanceUid: 'uid-a' }));
    policies.upsert(goldPolicy({ gpus: [{ max: 0 }], images: [] }, '3'));
    await reconcile('a');
    expect(claimed()).toEqual(['a']);
    create('b');
    await reconcile('b');
    expect([claimed(), ready('b')?.reason]).toEqual([['a'], 'TenantLimit']);
  });

  it('waits for a namespace whose labels are not known yet', async () => {
    const { create, reconcile, claimed, ready, namespaces, woken } = limited({});
    namespaces.remove({ metadata: { name: 'default', uid: 'uid-default' } });
    create('a');
    await reconcile('a');
    expect([claimed(), ready('a')?.reason]).toEqual([[], 'TenantLimit']);
    namespaces.upsert({ metadata: { name: 'default', uid: 'uid-default', resourceVersion: '2' } });
    expect(woken).toEqual(['default/a']);
    await reconcile('a');
    expect(claimed()).toEqual(['a']);
  });

  it('remembers nothing of an instance that is gone', async () => {
    const { create, reconcile, instances, woken, release } = limited(ONE_GPU);
    create('owner');
    await reconcile('owner');
    create('a');
    await reconcile('a');
    instances.remove(held(gpuInstance('a')));
    await reconcile('a');
    release('owner');
    expect(woken).toEqual([]);
  });
});

test('an image that its owner changes between the claim and the pod is refused all the same', async () => {
  const { instances, reconcile, createdPods } = limited({ images: ['r.io/*'] });
  const status = { claim: claimOn('n'), incarnation: 1, podName: 'a-1', diskPersistent: false, diskGb: 10 };
  instances.upsert(held(gpuInstance('a', { image: 'evil.example/app' }, status)));
  await reconcile('a');
  expect(createdPods()).toEqual([]);
  const seen = instances.store.get('default/a')?.status;
  expect([seen?.claim, seen?.ending?.message]).toEqual([undefined, expect.stringContaining('not evil.example/app')]);
});

describe('a place that others leave for an instance', () => {
  /** Eight interruptible instances of another tenant have one node, and a node with one GPU is free. */
  async function worldOf(policy: object = { gpus: [{ max: 8 }] }) {
    const one = gpuNode('m', { labels: { 'nvidia.com/gpu.count': '1' }, allocatable: { 'nvidia.com/gpu': '1' } });
    const world = policyWorld(policy, undefined, undefined, { nodes: [gpuNode('n'), one] });
    const spots = Array.from({ length: 8 }, (_, index) => {
      const status = { claim: claimOn('n'), incarnation: 1, podName: `s-${index}-1` };
      const { metadata, ...spot } = held(gpuInstance(`s-${index}`, { type: 'Interruptible' }, status));
      return { ...spot, metadata: { ...metadata, namespace: 'other' } };
    });
    for (const spot of spots) world.instances.upsert(spot);
    world.create('big', { gpu: { count: 8 } });
    await world.reconcile('big');
    expect(world.ready('big')?.reason).toBe('PlaceComing');
    const leave = () => {
      for (const { metadata } of spots) world.instances.remove({ ...metadata, metadata } as never);
    };
    return { ...world, leave };
  }

  it('counts as held: no other instance of the tenant takes the room that the ceiling has for it', async () => {
    const { create, reconcile, ready, instance, leave } = await worldOf();
    create('small', { gpu: { count: 1 } });
    await reconcile('small');
    expect(ready('small')?.reason).toBe('TenantLimit');
    leave();
    await reconcile('big');
    expect(instance('big').status?.claim).toMatchObject({ node: 'n', gpuCount: 8 });
  });

  it('stays its place while a new leader reads what the tenant has spent, and holds up nobody', async () => {
    const { instances, deps, recorded, reconcile, ready, instance, leave } = await worldOf({
      budget: { costs: [{ currency: 'USD', max: '1000.00' }] },
    });
    const known = recorded.now;
    recorded.now = undefined;
    deps.line = new WaitingLine(deps.inventory, deps.clock);
    leave();
    await reconcile('big');
    expect(ready('big')?.reason).toBe('PlaceComing');
    const other = held(gpuInstance('other', { gpu: { count: 2 } }));
    instances.upsert({ ...other, metadata: { ...other.metadata, namespace: 'other' } });
    await reconcile('other', 'other');
    expect(instances.store.get('other/other')?.status?.claim).toBeUndefined();
    expect(deps.line.before('other/other', other)).toBeUndefined();
    recorded.now = known;
    await reconcile('big');
    expect(instance('big').status?.claim).toMatchObject({ node: 'n', gpuCount: 8 });
  });

  it('and that its tenant has no room for after all counts as a request that was taken back', async () => {
    const { quotas, reconcile, ready, deps } = await worldOf();
    const refusal = () => deps.unbilled.preemptingRefusal('default', 'debian:12')?.message;
    expect(refusal()).toBeUndefined();
    const hard = { 'requests.nvidia.com/gpu': '1' };
    const status = { hard, used: { 'requests.nvidia.com/gpu': '0' } };
    quotas.upsert({ metadata: { name: 'q', namespace: 'default' }, spec: { hard }, status });
    await reconcile('big');
    expect(ready('big')?.reason).toBe('QuotaExceeded');
    expect(refusal()).toContain('others ended for requests of this tenant');
  });
});
