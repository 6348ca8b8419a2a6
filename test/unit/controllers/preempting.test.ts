import { describe, expect, test } from 'vitest';
import { preemptingRefusal } from '../../../src/controllers/gpu-instance/decide/preempting.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { endedBills } from '../../../src/ledger/bills.ts';
import { intervalOf } from '../../../src/ledger/interval.ts';
import { isPlaceComing } from '../../../src/caches/line-order.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { NetworkPolicy } from '../../../src/kube/network-policy.ts';
import { cacheOf, controllerWorld, held } from '../../support/controller-world.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.UTC(2026, 0, 1);
const iso = (ms: number): string => new Date(ms).toISOString();
const IMAGE = 'registry.invalid/never:1';

/** Eight interruptible instances on the one node. */
function world() {
  const made = controllerWorld();
  made.namespaces.upsert({ metadata: { name: 'attacker', uid: 'uid-attacker', resourceVersion: '2' } });
  const spots = Array.from({ length: 8 }, (_, index) => `spot-${index}`);
  for (const name of spots) {
    const status = { claim: claimOn('n'), incarnation: 1, podName: `${name}-1`, diskPersistent: true };
    made.instances.upsert(held(gpuInstance(name, { type: 'Interruptible' }, status)));
  }
  const get = (name: string) => made.instances.store.get(`default/${name}`) ?? expect.unreachable();
  const told = () => spots.filter((name) => get(name).status?.ending?.reason === 'Preempted');
  const ask = (name: string, image = IMAGE) => {
    const one = held(gpuInstance(name, { gpu: { count: 1 }, image }));
    made.instances.upsert({ ...one, metadata: { ...one.metadata, namespace: 'attacker' } });
    return made.reconcile(name, 'attacker');
  };
  const asked = (name: string) => made.instances.store.get(`attacker/${name}`) ?? expect.unreachable();
  /** The last instance of the attacker, whose image did not come. */
  const failed = (name: string, image = IMAGE) => {
    const now = made.clock.now();
    const status: GpuInstanceStatus = {
      incarnation: 1,
      image,
      lastProduct: { product: 'A100', gpuCount: 1 },
      stages: { claimed: iso(now - MINUTE), stopped: iso(now) },
      ending: { reason: 'ImagePullFailed', message: '', at: iso(now) },
    };
    const one = gpuInstance(name, { powerState: 'Stopped', image }, status);
    made.instances.upsert({ ...one, metadata: { ...one.metadata, namespace: 'attacker' } });
  };
  const remove = (instance: GpuInstance) => made.instances.remove(instance);
  return { ...made, get, told, ask, asked, failed, remove };
}

/** As if this had ended the start in place of its image, in the first look of a replica at it. */
function remakeAs(instances: ReturnType<typeof controllerWorld>['instances'], one: GpuInstance, reason: string): void {
  const ending = { reason, message: '', at: one.status?.stages?.stopped ?? '' };
  const metadata = { ...one.metadata, uid: one.metadata.uid ?? '', resourceVersion: '77' };
  instances.upsert({ ...one, metadata, status: { ...one.status, claim: claimOn('gone') } });
  instances.upsert({ ...one, metadata: { ...metadata, resourceVersion: '78' }, status: { ...one.status, ending } });
}

const ready = ({ status }: GpuInstance) => status?.conditions?.find(({ type }) => type === 'Ready');

test('nobody ends for an image that came to no container of the tenant lately', async () => {
  const { ask, asked, told, failed } = world();
  failed('before');
  expect(await ask('one')).toMatchObject({ requeueAfterMs: expect.any(Number) });
  expect(told()).toEqual([]);
  expect(ready(asked('one'))).toMatchObject({
    reason: 'WaitingForCapacity',
    message: expect.stringContaining(`with the image ${IMAGE} ended before its container ran`),
  });
  await ask('two', 'other:1');
  expect(told()).toHaveLength(1);
});

test.each([
  ['as much', '0', 'other'],
  ['more', '3', undefined],
])('nobody ends for an offer while the same GPUs are free in a pool that costs %s', async (_what, price, pool) => {
  const made = world();
  const [own] = [...made.pools.store.values()];
  const prices = [{ product: A100, onDemand: price, interruptible: '0' }];
  const other = gpuPool('other', { ...own?.spec, nodeSelector: { tier: 'other' }, prices });
  made.pools.upsert({ ...other, metadata: { ...other.metadata, uid: 'uid-other', resourceVersion: '5' } });
  const node = gpuNode('elsewhere', { labels: { tier: 'other' } });
  made.nodes.upsert({ ...node, metadata: { ...node.metadata, uid: 'uid-elsewhere', resourceVersion: '5' } });
  const offers = made.inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  const offerId = offers.find((one) => one.pool === own?.metadata.name)?.id;
  const one = held(gpuInstance('one', { offerId, image: 'debian:12' }));
  made.instances.upsert({ ...one, metadata: { ...one.metadata, namespace: 'attacker' } });
  await made.reconcile('one', 'attacker');
  expect(made.told()).toHaveLength(pool === undefined ? 1 : 0);
  expect(made.asked('one').status?.claim?.pool).toBe(pool);
});

test('the deletion of the instance whose image did not come changes nothing', async () => {
  const { ask, asked, told, failed, remove } = world();
  failed('before');
  remove(asked('before'));
  await ask('one');
  expect(told()).toEqual([]);
});

test('a start that its owner stopped after a moment says nothing of its image', async () => {
  const { ask, told, failed, asked, instances } = world();
  failed('before');
  const one = asked('before');
  remakeAs(instances, one, 'Stopped');
  await ask('one');
  expect(told()).toHaveLength(1);
});

test('a start that others ended for, and that never ran, counts like a request that was taken back', async () => {
  const { ask, asked, told, instances, clock } = world();
  const now = clock.now();
  const claim = claimOn('elsewhere', { byPreemption: true, grantedAt: iso(now) });
  const one = gpuInstance('vain', {}, { incarnation: 1, claim, image: 'debian:12', stages: { claimed: iso(now) } });
  const vain = { ...one, metadata: { ...one.metadata, namespace: 'attacker' } };
  instances.upsert(vain);
  instances.remove(vain);
  await ask('two', 'debian:12');
  expect(told()).toEqual([]);
  expect(ready(asked('two'))?.message).toContain('or that never ran');
});

test('others end again once a container of the image runs', async () => {
  const { ask, told, failed, instances, clock } = world();
  failed('before');
  const status = {
    claim: claimOn('elsewhere'),
    image: IMAGE,
    incarnation: 1,
    stages: { claimed: iso(clock.now()), started: iso(clock.now()) },
  };
  const one = gpuInstance('runs', {}, status);
  instances.upsert({ ...one, metadata: { ...one.metadata, namespace: 'attacker' } });
  await ask('one');
  expect(told()).toHaveLength(1);
});

test('who takes a request back for which others ended ends nobody for a while, and longer each time', async () => {
  const { ask, asked, told, remove, clock } = world();
  await ask('one', 'debian:12');
  expect(isPlaceComing(asked('one'))).toBe(true);
  remove(asked('one'));
  await ask('two', 'debian:12');
  expect(told()).toHaveLength(1);
  expect(ready(asked('two'))?.message).toContain('others ended for requests of this tenant that it took back');
  await clock.advance(5 * MINUTE);
  await ask('three', 'debian:12');
  expect(told()).toHaveLength(2);
  remove(asked('three'));
  await clock.advance(5 * MINUTE);
  await ask('four', 'debian:12');
  expect(told()).toHaveLength(2);
});

test.each<[string, Partial<GpuInstance['spec']>]>([
  ['a disk that no node has', { diskGb: 16_384 }],
  ['a user namespace that no node has', { hostUsers: false }],
  ['a RuntimeClass that no pool has', { runtimeClassName: 'kata' }],
])('who asks for %s once others were told to end takes the request back', async (_what, edit) => {
  const { ask, asked, deps, instances, reconcile } = world();
  await ask('one', 'debian:12');
  const { metadata, spec, ...one } = asked('one');
  const edited = { ...metadata, generation: (metadata.generation ?? 1) + 1, resourceVersion: '777' };
  instances.upsert({ ...one, metadata: edited, spec: { ...spec, ...edit } });
  await reconcile('one', 'attacker');
  expect(isPlaceComing(asked('one'))).toBe(false);
  expect(deps.unbilled.preemptingRefusal('attacker', 'debian:12')?.message).toContain('that it took back');
});

test('who opens its namespace once others were told to end takes the request back', async () => {
  const { ask, asked, deps, reconcile } = world();
  await ask('one', 'debian:12');
  deps.networkPolicies = cacheOf<NetworkPolicy>([], INDEXES.networkPolicies).store;
  await reconcile('one', 'attacker');
  expect(ready(asked('one'))?.reason).toBe('NetworkOpen');
  expect(deps.unbilled.preemptingRefusal('attacker', 'debian:12')?.message).toContain('that it took back');
});

test('who has a disk of its name deleted once others were told to end takes the request back', async () => {
  const { ask, asked, deps, disks, reconcile } = world();
  await ask('one', 'debian:12');
  disks.upsert({ metadata: { name: 'one-disk', namespace: 'attacker', deletionTimestamp: iso(START) } });
  await reconcile('one', 'attacker');
  expect(ready(asked('one'))?.message).toContain('is being deleted');
  expect(deps.unbilled.preemptingRefusal('attacker', 'debian:12')?.message).toContain('that it took back');
});

test('a place that does not come is no request that was taken back', async () => {
  const { ask, asked, deps, nodes, reconcile } = world();
  await ask('one', 'debian:12');
  nodes.remove(gpuNode('n'));
  await reconcile('one', 'attacker');
  expect(ready(asked('one'))?.reason).toBe('WaitingForCapacity');
  expect(deps.unbilled.preemptingRefusal('attacker', 'debian:12')).toBeUndefined();
});

describe('the bill of a start that others ended for', () => {
  const claim = claimOn('n', { byPreemption: true, grantedAt: iso(START), pricePerHour: '2.00' });
  const billOf = (reason: string, stages: GpuInstanceStatus['stages'] = {}) => {
    const status: GpuInstanceStatus = {
      claim,
      incarnation: 1,
      stages: { claimed: iso(START), ...stages },
      ending: { reason, message: '', at: iso(START + HOUR) },
    };
    const ending = endingOf(status) ?? expect.unreachable();
    return releasedStatus(gpuInstance('one', {}, status), ending, START + HOUR).usage?.cost;
  };

  test.each(['Stopped', 'ImagePullFailed', 'ContainerInvalid'])('begins with its grant when %s ends it', (reason) => {
    expect(billOf(reason)).toBe('2.00');
  });

  test('says so', () => {
    const status: GpuInstanceStatus = { claim, incarnation: 1, stages: { claimed: iso(START) } };
    expect(intervalOf(status, START + HOUR)).toMatchObject({ from: iso(START), byPreemption: true });
  });

  test.each(['ContainerNotCreated', 'NodeLost', 'PlaceLost', 'GPUUnhealthy', 'Preempted'])(
    'is none when %s ends it',
    (reason) => {
      expect(billOf(reason)).toBe('0.00');
    },
  );

  test('begins with its grant whatever ends it, once its container ran', () => {
    expect(billOf('ContainerNotCreated', { started: iso(START + HOUR / 2) })).toBe('2.00');
  });

  test.each([
    ['Stopped', '2.00'],
    ['ContainerNotCreated', undefined],
    ['Preempted', undefined],
  ] as const)('is known as soon as %s is about to end it: %s', (reason, cost) => {
    const one = gpuInstance('one', {}, { claim, incarnation: 1, stages: { claimed: iso(START) } });
    const status = endedStatus(one, { reason, message: '' }, START + HOUR);
    expect(endedBills({ ...one, status }).map(({ interval }) => interval.cost)).toEqual(
      cost === undefined ? [] : [cost],
    );
  });
});

test.each(['ContainerNotCreated', 'NodeLost', 'Preempted'] as const)(
  'a start that %s ends is billed from its grant when its run is seen with the end, or after it',
  (reason) => {
    const claim = claimOn('n', { byPreemption: true, grantedAt: iso(START), pricePerHour: '2.00' });
    const one = gpuInstance('one', {}, { claim, incarnation: 1, stages: { claimed: iso(START) } });
    const ending = endedStatus(one, { reason, message: '' }, START + HOUR);
    const status = { ...ending, stages: { ...ending.stages, started: iso(START + HOUR / 2) } };
    expect(endedBills({ ...one, status }).map(({ interval }) => interval.cost)).toEqual(['2.00']);
    const end = endingOf(status) ?? expect.unreachable();
    expect(releasedStatus({ ...one, status }, end, START + HOUR).usage?.cost).toBe('2.00');
  },
);

test('the grant after a preemption says so', async () => {
  const { ask, asked, told, instances, get, reconcile } = world();
  await ask('one', 'debian:12');
  const [victim = ''] = told();
  const { claim: _claim, ...status } = get(victim).status ?? {};
  const { metadata } = get(victim);
  instances.upsert({ ...get(victim), status, metadata: { ...metadata, resourceVersion: '999' } });
  await reconcile('one', 'attacker');
  expect(asked('one').status?.claim).toMatchObject({ byPreemption: true });
});

describe('a later start, while one that ended for an earlier one waits still', () => {
  /** Another gives up its place by itself, and that is reserved for the start. */
  const coming = async () => {
    const made = world();
    const { asked, told, get, instances, reconcile } = made;
    const at = iso(START);
    const { claim: _claim, ...waits } = get('spot-0').status ?? {};
    const ending = { reason: 'Preempted', message: '', at, generation: 1, by: 'uid-one' };
    const metadata = { ...get('spot-0').metadata, resourceVersion: '900' };
    instances.upsert({ ...get('spot-0'), metadata, status: { ...waits, ending } });
    const stopped = { claim: claimOn('n'), incarnation: 1, ending: { reason: 'Stopped', message: '', at } };
    const leaving = held(gpuInstance('leaving', { powerState: 'Stopped' }, stopped));
    instances.upsert(leaving);
    const owed = { incarnation: 1, ending: { reason: 'NodeLost', message: '', at, generation: 1 } };
    const one = held(gpuInstance('one', { gpu: { count: 1 }, image: 'debian:12' }, owed));
    instances.upsert({ ...one, metadata: { ...one.metadata, namespace: 'attacker' } });
    await reconcile('one', 'attacker');
    expect(isPlaceComing(asked('one'))).toBe(true);
    expect(told()).toEqual(['spot-0']);
    return { ...made, leaving };
  };

  test('is billed from the first run of its container', async () => {
    const { asked, instances, leaving, reconcile } = await coming();
    instances.remove(leaving);
    await reconcile('one', 'attacker');
    expect(asked('one').status?.claim).toMatchObject({ node: 'n' });
    expect(asked('one').status?.claim?.byPreemption).toBeUndefined();
  });

  test('may be taken back', async () => {
    const { asked, deps, remove } = await coming();
    remove(asked('one'));
    expect(deps.unbilled.preemptingRefusal('attacker', 'debian:12')).toBeUndefined();
  });
});

test('a place that somebody leaves by themselves lets no tenant end others that may end nobody', async () => {
  const { ask, asked, told, remove, get, instances, line, reconcile, clock } = world();
  await ask('one', 'debian:12');
  remove(asked('one'));
  const before = told();
  await ask('two', 'debian:12');
  const { metadata, status, ...stopping } = get('spot-0');
  const ending = { reason: 'Stopped', message: '', at: iso(clock.now()) };
  instances.upsert({ ...stopping, metadata: { ...metadata, resourceVersion: '900' }, status: { ...status, ending } });
  line.preempting();
  await reconcile('two', 'attacker');
  expect(isPlaceComing(asked('two'))).toBe(true);
  // It does not end in time.
  await clock.advance(MINUTE);
  await reconcile('two', 'attacker');
  expect([isPlaceComing(asked('two')), told()]).toEqual([false, before]);
});

test('who wants other GPUs once others were told to end takes the request back, and soon ends nobody more', async () => {
  const { asked, deps, nodes, instances, reconcile } = world();
  const label = { 'nvidia.com/gpu.product': 'NVIDIA-H200' };
  nodes.upsert(gpuNode('m', { labels: label }));
  const claim = claimOn('m', { gpuCount: 8, product: 'NVIDIA-H200' });
  const status = { claim, incarnation: 1, podName: 'large-1', diskPersistent: true };
  instances.upsert(held(gpuInstance('large', { type: 'Interruptible' }, status)));
  const told = () =>
    [...instances.store.values()].filter((one) => one.status?.ending !== undefined).map((one) => one.metadata.name);
  const one = held(gpuInstance('one', { gpu: { count: 1, product: 'NVIDIA-H200' }, image: 'debian:12' }));
  instances.upsert({ ...one, metadata: { ...one.metadata, namespace: 'attacker' } });
  await reconcile('one', 'attacker');
  expect(told()).toEqual(['large']);
  const edit = (product: string, generation: number) => {
    const { metadata, spec, ...rest } = asked('one');
    const edited = { ...metadata, generation, resourceVersion: `9${generation}` };
    instances.upsert({ ...rest, metadata: edited, spec: { ...spec, gpu: { count: 1, product } } });
    return reconcile('one', 'attacker');
  };
  await edit(A100, 2);
  expect([isPlaceComing(asked('one')), told().length]).toEqual([true, 2]);
  expect(deps.unbilled.preemptingRefusal('attacker', 'debian:12')?.message).toContain('that it took back');
  const [large] = [instances.store.get('default/large') ?? expect.unreachable()];
  instances.upsert({ ...large, metadata: { ...large.metadata, resourceVersion: '950' }, status });
  await edit('NVIDIA-H200', 3);
  await reconcile('one', 'attacker');
  expect([isPlaceComing(asked('one')), told().length]).toEqual([false, 1]);
});

test('a pause never lasts longer than what it is for is remembered', () => {
  const withdrawn = Array.from({ length: 16 }, (_, index) => START + index);
  const { until } = preemptingRefusal({ past: [], withdrawn, isRunning: false }, IMAGE, START + 16) ?? { until: 0 };
  expect(until - START).toBeLessThanOrEqual(6 * HOUR + 16);
  expect(preemptingRefusal({ past: [], withdrawn, isRunning: false }, IMAGE, START + 7 * HOUR)).toBeUndefined();
});
