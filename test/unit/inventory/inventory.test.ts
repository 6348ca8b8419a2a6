import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shownIn } from '../../../src/kube/watch/resource-version.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import {
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPod,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';

function free(world: Parameters<typeof inventoryOf>[0], size = 1): number {
  return inventoryOf(world)
    .inventory.offers()
    .filter(({ gpuCount }) => gpuCount === size)
    .reduce((sum, { available }) => sum + available, 0);
}

function plain(offers: readonly object[]): unknown {
  return JSON.parse(JSON.stringify(offers));
}

function held(name: string, node: string, over: object = {}) {
  const claim = claimOn(node, { gpuCount: 4, ...over });
  return gpuInstance(name, { type: 'Interruptible' }, { claim, diskPersistent: true });
}

describe('what counts as free', () => {
  test.each([
    ['an empty node', {}, [], 8],
    ['a pod of another client', {}, [gpuPod('other', 'n', { gpus: 3 })], 5],
    ['a pod that is ending still holds its GPUs', {}, [gpuPod('other', 'n', { gpus: 3, terminating: true })], 5],
    ['a pod that has ended', {}, [gpuPod('other', 'n', { gpus: 3, phase: 'Succeeded' })], 8],
    ['a pod that is not bound', {}, [gpuPod('other', undefined, { gpus: 3 })], 8],
    ['a cordoned node', { cordoned: true }, [], 0],
    ['a node that is not ready', { ready: false }, [], 0],
    ['a foreign taint', { taints: [{ key: 'team', effect: 'NoSchedule' }] }, [], 0],
    [
      'a taint for broken GPUs',
      { taints: [{ key: 'nvidia.com/gpu-error', value: 'fatal', effect: 'NoSchedule' }] },
      [],
      0,
    ],
    ['a taint that evicts', { taints: [{ key: 'gpu-health', effect: 'NoExecute' }] }, [], 0],
    ['the GPU taint', { taints: [{ key: 'nvidia.com/gpu', effect: 'NoSchedule' }] }, [], 8],
    ['a preference', { taints: [{ key: 'team', effect: 'PreferNoSchedule' }] }, [], 8],
    [
      'a node whose device plugin lost GPUs',
      { allocatable: { 'nvidia.com/gpu': '2' } },
      [gpuPod('p', 'n', { gpus: 3 })],
      0,
    ],
  ])('%s', (_name, shape, pods, want) => {
    expect(free({ nodes: [gpuNode('n', shape)], pods })).toBe(want);
  });

  test('the largest init container counts, not the sum of them', () => {
    const pod = gpuPod('p', 'n', { gpus: 1 });
    const init = { name: 'i', resources: { requests: { 'nvidia.com/gpu': '4' } } };
    const spec = { containers: [], ...pod.spec, initContainers: [init, { ...init, name: 'j' }] };
    expect(free({ nodes: [gpuNode('n')], pods: [{ ...pod, spec }] })).toBe(4);
  });

  test('an init container that keeps running counts beside the main one', () => {
    const pod = gpuPod('p', 'n', { gpus: 1 });
    const init = { name: 'i', restartPolicy: 'Always', resources: { requests: { 'nvidia.com/gpu': '2' } } };
    const spec = { containers: [], ...pod.spec, initContainers: [init] };
    expect(free({ nodes: [gpuNode('n')], pods: [{ ...pod, spec }] })).toBe(5);
  });

  test('a claim counts, and counts once together with its own pod', () => {
    const instance = gpuInstance('a', {}, { claim: claimOn('n', { gpuCount: 2 }) });
    expect(free({ nodes: [gpuNode('n')], instances: [instance] })).toBe(6);
    const own = gpuPod('a-1', 'n', { gpus: 2, instanceUid: 'uid-a' });
    expect(free({ nodes: [gpuNode('n')], instances: [instance], pods: [own] })).toBe(6);
  });

  test('sizes come from the pool, and only whole GPUs come in sizes', () => {
    const pools = [gpuPool('p', { sizes: [1, 4] })];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n')], pools });
    expect(inventory.offers().map(({ gpuCount, available }) => [gpuCount, available])).toEqual([
      [1, 8],
      [4, 2],
    ]);
    const sliced = gpuNode('n', {
      labels: { 'nvidia.com/gpu.replicas': '4' },
      allocatable: { 'nvidia.com/gpu': '32' },
    });
    expect(inventoryOf({ nodes: [sliced] }).inventory.offers()).toHaveLength(1);
  });

  test('a new status of a pool leaves what nodes have as it is, new prices do not', () => {
    const pool = gpuPool('p');
    const { inventory, caches } = inventoryOf({ nodes: [gpuNode('n')], pools: [pool] });
    const change = (version: string, over: object): void =>
      caches.pools.upsert({ ...pool, ...over, metadata: { ...pool.metadata, resourceVersion: version } });
    const [{ classes }, [facts]] = [inventory, [...inventory.nodes()]];
    change('2', { status: { nodes: 1 } });
    expect(inventory.classes).toBe(classes);
    expect([...inventory.nodes()][0]).toBe(facts);
    change('3', { spec: gpuPool('p', { prices: [{ product: '*', onDemand: '7', interruptible: '3' }] }).spec });
    expect(inventory.offers()[0]?.prices.onDemand).toBe('7.00');
  });

  test('a node in two pools is offered once, by the pool that asks for more', () => {
    const labels = { tier: 'gold' };
    const pools = [gpuPool('all'), gpuPool('gold', { nodeSelector: { tier: 'gold' } })];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n', { labels }), gpuNode('m')], pools });
    const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
    expect(Object.fromEntries(ones.map(({ pool, available }) => [pool, available]))).toEqual({ all: 8, gold: 8 });
  });

  test('simulated nodes never share an offer with real ones', () => {
    const nodes = [gpuNode('real'), gpuNode('fake', { labels: { 'berth.dev/simulated': 'true' } })];
    const ones = inventoryOf({ nodes })
      .inventory.offers()
      .filter(({ gpuCount }) => gpuCount === 1);
    expect(Object.fromEntries(ones.map(({ simulated, available }) => [simulated, available]))).toEqual({
      false: 8,
      true: 8,
    });
    expect(new Set(ones.map(({ id }) => id)).size).toBe(2);
  });

  test('a GPU that is out of service keeps its part of the node, by which it is let when it is back', () => {
    const node = gpuNode('n', { allocatable: { 'nvidia.com/gpu': '7' } });
    const ill = {
      ...node,
      status: { ...node.status, capacity: { ...node.status?.allocatable, 'nvidia.com/gpu': '8' } },
    };
    const [one] = inventoryOf({ nodes: [ill] }).inventory.offers();
    expect(one).toMatchObject({ gpuCount: 1, available: 7, cpuCores: 8, memoryMbHost: 65_536 });
  });

  test('CPU that other pods took limits the places too', () => {
    const busy = { ...gpuPod('cpu', 'n', { gpus: 0 }) };
    const spec = { containers: [{ name: 'c', resources: { requests: { cpu: '60' } } }], nodeName: 'n' };
    expect(free({ nodes: [gpuNode('n')], pods: [{ ...busy, spec }] })).toBe(0);
  });

  test('a node on which starts of three instances failed is quarantined for a while', () => {
    const failures = { count: 1, lastTime: '2026-01-01T00:00:00Z', nodes: ['n'] };
    const instances = ['a', 'b', 'c'].map((name) => gpuInstance(name, {}, { failures }));
    const { inventory, clock } = inventoryOf({ nodes: [gpuNode('n')], instances });
    expect(inventory.offers()[0]?.available).toBe(0);
    clock.at = inventory.staleAt;
    expect(inventory.offers()[0]?.available).toBe(8);
  });

  test('one tenant of several cannot put a node into quarantine; two can, and so can a tenant that is alone', () => {
    const failed = (name: string, namespace: string, at = '2026-01-01T00:00:00Z') => {
      const one = gpuInstance(name, {}, { failures: { count: 1, lastTime: at, nodes: ['n'] } });
      return { ...one, metadata: { ...one.metadata, namespace } };
    };
    const instances = ['a', 'b', 'c'].map((name) => failed(name, 'bad'));
    const { inventory, caches, clock } = inventoryOf({ nodes: [gpuNode('n')], instances });
    const available = () => inventory.offers()[0]?.available;
    expect(available()).toBe(0);
    const put = (one: GpuInstance, resourceVersion: string): void =>
      caches.instances.upsert({ ...one, metadata: { ...one.metadata, resourceVersion } });
    put(gpuInstance('d'), '101');
    expect(available()).toBe(8);
    put(gpuInstance('d', { powerState: 'Stopped' }), '102');
    expect(available()).toBe(0);
    put(failed('d', 'default', '2025-12-31T23:55:00Z'), '103');
    expect(available()).toBe(0);
    expect(inventory.staleAt - clock.at).toBe(300_000);
    clock.at = inventory.staleAt;
    expect(available()).toBe(8);
  });

  test('prices are for the whole instance', () => {
    const prices = [{ product: '*', onDemand: '1.25', interruptible: '0.4' }];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n')], pools: [gpuPool('p', { prices, currency: 'EUR' })] });
    expect(inventory.offers().find(({ gpuCount }) => gpuCount === 8)?.prices).toEqual({
      onDemand: '10.00',
      interruptible: '3.20',
      currency: 'EUR',
    });
  });
});

describe('grants', () => {
  describe('without an offer', () => {
    const prices = [
      { product: 'NVIDIA-A100-SXM4-80GB', onDemand: '1.39', interruptible: '0.30' },
      { product: 'NVIDIA-A100-SXM4-80GB-MIG-1g.10gb', onDemand: '0.24', interruptible: '0.04' },
      { product: 'Tesla-T4-SHARED', onDemand: '0.06', interruptible: '0.05' },
    ];
    const shared = { 'nvidia.com/gpu.product': 'Tesla-T4-SHARED', 'nvidia.com/gpu.replicas': '4' };
    const world = (pods: Parameters<typeof gpuPod>[]) =>
      inventoryOf({
        nodes: [
          gpuNode('whole'),
          gpuNode('slices', { allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb': '1' } }),
          gpuNode('shares', {
            labels: { ...shared, 'nvidia.com/gpu.sharing-strategy': 'time-slicing' },
            allocatable: { 'nvidia.com/gpu': '1' },
          }),
        ],
        pools: [gpuPool('p', { prices })],
        pods: pods.map((pod) => gpuPod(...pod)),
      }).inventory;

    test.each([
      ['the cheapest free one, whatever it is', {}, [], 'shares'],
      ['by the price of the type', { type: 'Interruptible' as const }, [], 'slices'],
      ['the next one when the cheapest is taken', {}, ['shares'], 'slices'],
      ['the last one when only that is free', {}, ['shares', 'slices'], 'whole'],
      ['what is named holds', { gpu: { count: 1, isolation: 'whole' as const } }, [], 'whole'],
      ['a size that only whole GPUs have', { gpu: { count: 2 } }, [], 'whole'],
      ['a MIG profile', { gpu: { count: 1, migProfile: '1g.10gb' } }, [], 'slices'],
    ])('%s', (_name, request, taken, node) => {
      const resource = (on: string) => (on === 'slices' ? 'nvidia.com/mig-1g.10gb' : 'nvidia.com/gpu');
      const inventory = world(taken.map((on) => [`p-${on}`, on, { resource: resource(on) }]));
      expect(inventory.grant(placeRequest(request))).toMatchObject({ place: { node } });
    });
  });

  test('packs: the node with the fewest free GPUs that still fits', () => {
    const world = inventoryOf({ nodes: [gpuNode('a'), gpuNode('b')], pods: [gpuPod('p', 'b', { gpus: 5 })] });
    expect(world.inventory.grant(placeRequest())).toMatchObject({ place: { node: 'b' } });
    expect(world.inventory.grant(placeRequest({ gpu: { count: 4 } }))).toMatchObject({ place: { node: 'a' } });
  });

  test('a node that has the image goes before one that has not', () => {
    const nodes = [gpuNode('a'), gpuNode('b', { images: ['docker.io/library/debian:12'] })];
    expect(inventoryOf({ nodes }).inventory.grant(placeRequest({ image: 'debian:12' }))).toMatchObject({
      place: { node: 'b' },
    });
  });

  test('nodes to avoid come last, but are not refused', () => {
    const { inventory } = inventoryOf({ nodes: [gpuNode('a'), gpuNode('b')] });
    expect(inventory.grant(placeRequest({ avoid: new Set(['a']) }))).toMatchObject({ place: { node: 'b' } });
    expect(inventory.grant(placeRequest({ avoid: new Set(['a', 'b']) }))).toMatchObject({ place: { node: 'a' } });
  });

  test.each([
    ['OfferNotFound', { offerId: 12 }],
    ['NoCapacity', { gpu: { count: 1, product: 'H100' } }],
    ['NoCapacity', { gpu: { count: 64 } }],
    ['DiskTooLarge', { diskGb: 5000 }],
    ['OfferChanged', { offerDiskSpace: 5000 }],
  ])('refuses with %s', (refusal, over) => {
    expect(inventoryOf({ nodes: [gpuNode('a')] }).inventory.grant(placeRequest(over))).toMatchObject({ refusal });
  });

  test('an assumed claim counts at once and until the cache has it', () => {
    const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a')], instances: [gpuInstance('x')] });
    inventory.assume(gpuInstance('x'), claimOn('a', { gpuCount: 8 }), { gb: 10, persistent: false });
    expect(inventory.grant(placeRequest())).toMatchObject({ refusal: 'NoCapacity' });
    const done = gpuInstance('x', {}, { claim: claimOn('a', { gpuCount: 8 }) });
    done.metadata.resourceVersion = '120';
    inventory.written('default/x', shownIn(caches.instances.store, done));
    expect(inventory.offers()[0]?.available).toBe(0);
    caches.instances.upsert(done);
    expect(inventory.offers()[0]?.available).toBe(0);
    const gone = gpuInstance('x');
    caches.instances.upsert({ ...gone, metadata: { ...gone.metadata, resourceVersion: '130' } });
    expect(inventory.offers()[0]?.available).toBe(8);
  });

  test('a claim that could not be written is free again', () => {
    const { inventory } = inventoryOf({ nodes: [gpuNode('a')], instances: [gpuInstance('x')] });
    inventory.assume(gpuInstance('x'), claimOn('a', { gpuCount: 8 }), { gb: 10, persistent: false });
    inventory.forget('default/x');
    expect(inventory.offers()[0]?.available).toBe(8);
  });

  // Its outcome is in the caches by then, also when the instance is gone and nobody looks at it again.
  test('a new term as the leader begins without what an earlier one left open', () => {
    const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a')], instances: [gpuInstance('x')] });
    inventory.assume(gpuInstance('x'), claimOn('a', { gpuCount: 8 }), { gb: 10, persistent: false });
    caches.instances.remove(gpuInstance('x'));
    expect(inventory.offers()[0]?.available).toBe(0);
    inventory.forgetAll();
    expect(inventory.offers()[0]?.available).toBe(8);
    expect(inventory.undecided('default/x')).toBeUndefined();
  });

  test('never more is granted than a node has, whatever comes and goes', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('rent' as const), count: fc.constantFrom(1, 2, 4, 8) }),
      fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }),
      fc.record({ kind: fc.constant('pod' as const), node: fc.nat(2), gpus: fc.integer({ min: 1, max: 8 }) }),
      fc.record({ kind: fc.constant('cordon' as const), node: fc.nat(2), on: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { inventory, caches } = inventoryOf({ nodes: [gpuNode('n0'), gpuNode('n1'), gpuNode('n2')] });
        const claims = new Map<string, { node: string; count: number }>();
        const foreign: Record<string, number> = {};
        const busy = (node: string): number =>
          [...claims.values()].filter((one) => one.node === node).reduce((sum, { count }) => sum + count, 0);
        let version = 100;
        for (const [index, one] of steps.entries()) {
          version += 1;
          if (one.kind === 'rent') {
            const granted = inventory.grant(placeRequest({ gpu: { count: one.count } }));
            if (!('place' in granted)) continue;
            const { node } = granted.place;
            expect(busy(node) + (foreign[node] ?? 0) + one.count).toBeLessThanOrEqual(8);
            const name = `i${index}`;
            claims.set(name, { node, count: one.count });
            const claim = claimOn(node, { gpuCount: one.count });
            // Half of the grants are seen through the cache, half are still assumed.
            if (index % 2 === 0) {
              const instance = gpuInstance(name, {}, { claim, diskPersistent: true });
              instance.metadata.resourceVersion = String(version);
              caches.instances.upsert(instance);
            } else {
              inventory.assume(gpuInstance(name), claim, { gb: 1, persistent: true });
            }
          } else if (one.kind === 'release') {
            const name = [...claims.keys()][one.pick % Math.max(1, claims.size)];
            if (name === undefined) continue;
            claims.delete(name);
            inventory.forget(`default/${name}`);
            const instance = gpuInstance(name);
            instance.metadata.resourceVersion = String(version);
            caches.instances.remove(instance);
          } else if (one.kind === 'pod') {
            const node = `n${one.node}`;
            if (busy(node) + (foreign[node] ?? 0) + one.gpus > 8) continue;
            foreign[node] = (foreign[node] ?? 0) + one.gpus;
            const pod = gpuPod(`p${index}`, node, { gpus: one.gpus });
            caches.pods.upsert({ ...pod, metadata: { ...pod.metadata, resourceVersion: String(version) } });
          } else {
            const node = gpuNode(`n${one.node}`, { cordoned: one.on });
            caches.nodes.upsert({ ...node, metadata: { ...node.metadata, resourceVersion: String(version) } });
          }
          const available = inventory.offers().find(({ gpuCount }) => gpuCount === 1)?.available ?? 0;
          const really = ['n0', 'n1', 'n2'].reduce((sum, node) => sum + 8 - busy(node) - (foreign[node] ?? 0), 0);
          expect(available).toBeLessThanOrEqual(really);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('offers that are kept up to date equal offers that are computed from nothing', () => {
    const pods = [gpuPod('p', 'a', { gpus: 2 }), gpuPod('q', 'b', { gpus: 1 })];
    const { inventory, caches } = inventoryOf({ nodes: [gpuNode('a'), gpuNode('b')], pods });
    inventory.offers();
    const gone = pods[0];
    if (gone !== undefined) caches.pods.remove({ ...gone, metadata: { ...gone.metadata, resourceVersion: '101' } });
    const fresh = inventoryOf({ nodes: [gpuNode('a'), gpuNode('b')], pods: [pods[1] ?? gpuPod('q', 'b')] });
    expect(plain(inventory.offers())).toEqual(plain(fresh.inventory.offers()));
  });
});

describe('preemption', () => {
  const onDemand = placeRequest({ gpu: { count: 8 } });
  test('takes the node where the fewest must go', () => {
    const instances = [held('a', 'n'), held('b', 'n'), held('c', 'm', { gpuCount: 8 })];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n'), gpuNode('m')], instances });
    expect(inventory.preempt(onDemand)).toMatchObject({ place: { node: 'm' }, victims: [{ key: 'default/c' }] });
  });

  test('offers say how many places an on-demand instance gets beside the free ones', () => {
    const onDemandOne = gpuInstance('kept', {}, { claim: claimOn('n', { gpuCount: 2 }), diskPersistent: true });
    const leaving = {
      claim: claimOn('m', { gpuCount: 4 }),
      diskPersistent: true,
      ending: { reason: 'Stopped', message: '', at: '2026-01-01T00:00:00Z' },
    };
    const instances = [held('a', 'n'), onDemandOne, gpuInstance('going', { type: 'Interruptible' }, leaving)];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n'), gpuNode('m')], instances });
    const bySize = new Map(inventory.offers().map((offer) => [offer.gpuCount, offer]));
    expect([1, 2, 4, 8].map((size) => bySize.get(size)?.available)).toEqual([6, 3, 1, 0]);
    expect([1, 2, 4, 8].map((size) => bySize.get(size)?.availableByPreemption)).toEqual([4, 2, 1, 0]);
  });

  test('the newest goes first, and no more than needed', () => {
    const instances = [held('old', 'n'), held('new', 'n', { grantedAt: '2026-01-01T01:00:00Z' })];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n')], instances });
    expect(inventory.preempt(placeRequest({ gpu: { count: 4 } }))).toMatchObject({ victims: [{ key: 'default/new' }] });
  });

  test('leaves the newest where an older one is needed, and enough', () => {
    const newest = held('new', 'n', { gpuCount: 2, grantedAt: '2026-01-01T01:00:00Z' });
    const instances = [held('old', 'n'), newest];
    const rest = gpuInstance('rest', {}, { claim: claimOn('n', { gpuCount: 2 }), diskPersistent: true });
    const { inventory } = inventoryOf({ nodes: [gpuNode('n')], instances: [...instances, rest] });
    expect(inventory.preempt(placeRequest({ gpu: { count: 4 } }))).toMatchObject({ victims: [{ key: 'default/old' }] });
  });

  test('never touches on-demand instances', () => {
    const instances = [gpuInstance('a', {}, { claim: claimOn('n', { gpuCount: 8 }), diskPersistent: true })];
    expect(inventoryOf({ nodes: [gpuNode('n')], instances }).inventory.preempt(onDemand)).toBeUndefined();
  });

  test('waits for instances that are leaving already', () => {
    const leaving = held('a', 'n', { gpuCount: 8 });
    leaving.status = { ...leaving.status, ending: { reason: 'Preempted', message: '', at: '2026-01-01T00:00:00Z' } };
    const instances = [leaving, held('b', 'm', { gpuCount: 8 })];
    const { inventory } = inventoryOf({ nodes: [gpuNode('n'), gpuNode('m')], instances });
    expect(inventory.preempt(onDemand)).toMatchObject({ place: { node: 'n' }, victims: [] });
  });

  test('does not wait for an instance that has been leaving for more than a minute', () => {
    const stuck = held('a', 'n', { gpuCount: 8 });
    stuck.status = { ...stuck.status, ending: { reason: 'Preempted', message: '', at: '2026-01-01T00:00:00Z' } };
    const world = { nodes: [gpuNode('n'), gpuNode('m')], instances: [stuck, held('b', 'm', { gpuCount: 8 })] };
    const { inventory, clock } = inventoryOf(world);
    expect(inventory.preempt(onDemand)).toMatchObject({ place: { node: 'n' }, victims: [] });
    clock.at += 60_000;
    expect(inventory.preempt(onDemand)).toMatchObject({ place: { node: 'm' }, victims: [{ key: 'default/b' }] });
  });

  test('preempts nothing, and waits for nothing, where the disk would not fit', () => {
    const nodes = [
      gpuNode('small', { allocatable: { 'ephemeral-storage': '100Gi' } }),
      gpuNode('large', { allocatable: { 'ephemeral-storage': '1Ti' } }),
    ];
    const request = placeRequest({ gpu: { count: 8 }, diskGb: 200 });
    const sure = gpuInstance('sure', {}, { claim: claimOn('large', { gpuCount: 8 }), diskPersistent: true });
    const spots = [held('a', 'large'), held('b', 'large')];
    for (const onSmall of [[], [held('c', 'small', { gpuCount: 8 })]]) {
      const busy = inventoryOf({ nodes, instances: [...onSmall, sure] }).inventory;
      expect(busy.grant(request)).toMatchObject({ refusal: 'NoCapacity' });
      expect(busy.preempt(request)).toBeUndefined();
      const { inventory } = inventoryOf({ nodes, instances: [...onSmall, ...spots] });
      expect(inventory.preempt(request)).toMatchObject({ place: { node: 'large' }, victims: [{}, {}] });
    }
  });
});

// Any tenant may write the label of an instance on a pod of its own.
test.each(['default', 'elsewhere'])(
  'a pod with the label of an instance, in namespace %s, hides no claim',
  (namespace) => {
    const stray = gpuPod('stray', 'n', { gpus: 0, instanceUid: 'uid-a' });
    const { inventory } = inventoryOf({
      nodes: [gpuNode('n')],
      pods: [{ ...stray, metadata: { ...stray.metadata, namespace } }],
      instances: [gpuInstance('a', {}, { claim: claimOn('n', { gpuCount: 8 }) })],
    });
    expect(inventory.offers().map(({ available }) => available)).toEqual([0, 0, 0, 0]);
  },
);
