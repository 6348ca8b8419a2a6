import { describe, expect, test } from 'vitest';
import type { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice } from '../../../src/kube/devices.ts';
import { gpuCounts } from '../../../src/inventory/nodes/gpu-counts.ts';
import type { Node, Pod } from '../../../src/kube/types.ts';
import {
  bareNode,
  deviceClass,
  gpuDevice,
  resourceClaim,
  resourceSlice,
  taintedDevice,
} from '../../support/device-world.ts';
import {
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPod,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';

const A100 = 'NVIDIA-A100-SXM4-80GB';
const POOL = gpuPool('dra', {
  devices: { deviceClassName: 'gpu.nvidia.com' },
  prices: [{ product: A100, onDemand: '2.00', interruptible: '1.00' }],
});
const FOUR = ['gpu-0', 'gpu-1', 'gpu-2', 'gpu-3'].map((name) => gpuDevice(name));

interface Fleet {
  devices?: Parameters<typeof resourceSlice>[1];
  slices?: ResourceSlice[];
  classes?: DeviceClass[];
  claims?: ResourceClaim[];
  pods?: Pod[];
  node?: Node;
}

function fleet({ devices = FOUR, slices, classes = [deviceClass()], claims = [], pods = [], node }: Fleet = {}) {
  return inventoryOf({
    nodes: [node ?? bareNode('n')],
    pods,
    pools: [POOL],
    resourceSlices: slices ?? [resourceSlice('n', devices)],
    deviceClasses: classes,
    resourceClaims: claims,
  });
}

/** How many instances with one GPU could start; undefined when there is no offer. */
function available(one: ReturnType<typeof fleet>): number | undefined {
  return one.inventory.offers().find(({ gpuCount }) => gpuCount === 1)?.available;
}

function bound(name: string, node = 'n', shape: Parameters<typeof gpuPod>[2] = {}): Pod {
  const pod = gpuPod(name, node, shape);
  return { ...pod, metadata: { ...pod.metadata, uid: `uid-${name}` } };
}

test('offers tell of GPUs in slices what they tell of others', () => {
  const { inventory } = fleet();
  const [one] = inventory.offers();
  expect(one).toMatchObject({
    pool: 'dra',
    resourceName: 'nvidia.com/gpu',
    product: A100,
    memoryMb: 81920,
    isolation: 'whole',
    available: 4,
    prices: { onDemand: '2.00' },
    driverVersion: '580.95.5',
    cudaVersion: '13.0',
  });
  expect(inventory.offers().map(({ gpuCount, available: free }) => [gpuCount, free])).toEqual([
    [1, 4],
    [2, 2],
    [4, 1],
  ]);
});

test.each<[what: string, one: Fleet, free: number | undefined]>([
  [
    'the newest generation counts',
    {
      slices: [1, 2].map((generation) =>
        resourceSlice('n', FOUR.slice(generation), { pool: { name: 'n', generation, resourceSliceCount: 1 } }),
      ),
    },
    2,
  ],
  [
    'a generation that is not complete counts for nothing',
    { slices: [resourceSlice('n', FOUR, { pool: { name: 'n', generation: 1, resourceSliceCount: 2 } })] },
    undefined,
  ],
  ['a pool that names a device twice counts for nothing', { devices: [...FOUR, gpuDevice('gpu-0')] }, undefined],
  ['a slice of another node gives nothing', { slices: [resourceSlice('other', FOUR)] }, undefined],
  ['devices with the taint NoSchedule are out', { devices: [...FOUR.slice(1), taintedDevice(gpuDevice('gpu-0'))] }, 3],
  [
    'devices with the taint NoExecute are out',
    { devices: [...FOUR.slice(1), taintedDevice(gpuDevice('gpu-0'), 'NoExecute')] },
    3,
  ],
  [
    'a taint without an effect on pods changes nothing',
    { devices: [...FOUR.slice(1), taintedDevice(gpuDevice('gpu-0'), 'None')] },
    4,
  ],
  ['devices of two products are not sold', { devices: [...FOUR, gpuDevice('gpu-4', 'NVIDIA H100')] }, undefined],
  [
    'where a device plugin counts the resource, slices give nothing',
    { node: gpuNode('n', { labels: { 'nvidia.com/gpu.product': '' } }) },
    undefined,
  ],
  [
    'where a device plugin was, and counts none any more, slices count',
    { node: bareNode('n', { allocatable: { 'nvidia.com/gpu': '0' } }) },
    4,
  ],
])('%s', (_, one, free) => {
  expect(available(fleet(one))).toBe(free);
});

const held = (names: string[], shape?: Parameters<typeof resourceClaim>[3]) => resourceClaim('c', 'n', names, shape);
const own = bound('own');

test.each<[what: string, one: Fleet, free: number]>([
  ["anybody's claim takes its devices", { claims: [held(['gpu-0', 'gpu-1'])] }, 2],
  ['an administrator only looks', { claims: [held(['gpu-0'], { adminAccess: true })] }, 4],
  [
    'the claim that a pod was given for its request counts once',
    { pods: [own], claims: [held(['gpu-0'], { pod: own })] },
    3,
  ],
  ['it counts while its pod is gone', { claims: [held(['gpu-0'], { pod: own })] }, 3],
  [
    'it counts when its pod has ended',
    { pods: [bound('own', 'n', { phase: 'Succeeded' })], claims: [held(['gpu-0'], { pod: own })] },
    3,
  ],
  [
    'it counts beside another pod of that name',
    { pods: [{ ...own, metadata: { ...own.metadata, uid: 'other' } }], claims: [held(['gpu-0'], { pod: own })] },
    2,
  ],
  [
    'a claim by another class takes the same devices',
    { pods: [own], claims: [held(['gpu-0'], { pod: own, deviceClassName: 'other' })] },
    2,
  ],
  [
    'a tainted device that is in use takes no other',
    { devices: [...FOUR.slice(1), taintedDevice(gpuDevice('gpu-0'))], claims: [held(['gpu-0'])] },
    3,
  ],
])('%s', (_, one, free) => {
  expect(available(fleet(one))).toBe(free);
});

test('what Berth granted counts once before and after its pod has a device', () => {
  const one = fleet();
  const instance = gpuInstance('i', {}, { claim: claimOn('n', { pool: 'dra', gpuCount: 2 }) });
  one.caches.instances.upsert(instance);
  expect(available(one)).toBe(2);
  const shape = { gpus: 2, instanceUid: 'uid-i' };
  const unbound = {
    ...bound('i-1', undefined, shape),
    spec: { containers: bound('i-1', 'n', shape).spec?.containers ?? [] },
  };
  one.caches.pods.upsert(unbound);
  one.caches.resourceClaims.upsert(held(['gpu-0', 'gpu-1'], { pod: unbound }));
  expect(available(one)).toBe(2);
  one.caches.pods.upsert(bound('i-1', 'n', shape));
  expect(available(one)).toBe(2);
  const view = one.inventory.viewOf('n');
  expect(view && gpuCounts(view, one.inventory.claimsOn('n'))).toMatchObject([
    { resourceName: 'nvidia.com/gpu', total: 4, unhealthy: 0, rented: 2, others: 0, free: 2 },
  ]);
});

function partitioned(...allocated: string[]) {
  const counters = { memory: { value: '80Gi' }, 'slice-0': { value: '1' }, 'slice-1': { value: '1' } };
  const whole = gpuDevice('gpu-0', undefined, { consumesCounters: [{ counterSet: 'c', counters }] });
  const parts = [0, 1].map((index) =>
    gpuDevice(`mig-${index}`, undefined, {
      attributes: { type: { string: 'mig' } },
      consumesCounters: [
        { counterSet: 'c', counters: { memory: { value: '10Gi' }, [`slice-${index}`]: { value: '1' } } },
      ],
    }),
  );
  const pool = { name: 'n', generation: 1, resourceSliceCount: 2 };
  const sets = resourceSlice('n', [], { pool, sharedCounters: [{ name: 'c', counters }] });
  const slices = [
    { ...sets, metadata: { name: 'counters' } },
    resourceSlice('n', [whole, ...parts, gpuDevice('gpu-1')], { pool }),
  ];
  return fleet({ slices, claims: allocated.map((name) => resourceClaim(name, 'n', [name])) });
}

test('partitions that claims have withhold their GPU once, and no other', () => {
  expect(available(partitioned())).toBe(2);
  expect(available(partitioned('mig-0'))).toBe(1);
  expect(available(partitioned('mig-0', 'mig-1'))).toBe(1);
});

test.each<[what: string, classes: DeviceClass[], gap: string]>([
  ['there is no class', [], 'Berth reads no DeviceClass gpu.nvidia.com.'],
  [
    'the class selects by what Berth cannot read',
    [
      deviceClass('gpu.nvidia.com', {
        selectors: [
          { cel: { expression: "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0" } },
        ],
      }),
    ],
    'its selectors are more than',
  ],
  [
    'a newer class has the name',
    [
      deviceClass(),
      { ...deviceClass('newer'), metadata: { name: 'newer', creationTimestamp: '2026-02-01T00:00:00Z' } },
    ],
    'get devices of DeviceClass newer',
  ],
])('%s: nothing is offered, and it says why', (_, classes, gap) => {
  const one = fleet({ classes });
  expect(available(one)).toBeUndefined();
  expect(one.inventory.deviceClassGap('gpu.nvidia.com')).toContain(gap);
});

test('what changes in slices, classes, claims and pods changes the offers', () => {
  const one = fleet({ slices: [], classes: [] });
  expect(available(one)).toBeUndefined();
  one.caches.resourceSlices.upsert(resourceSlice('n', FOUR));
  one.caches.deviceClasses.upsert(deviceClass());
  expect(available(one)).toBe(4);
  one.caches.resourceClaims.upsert(held(['gpu-0'], { pod: own }));
  expect(available(one)).toBe(3);
  one.caches.pods.upsert(own);
  expect(available(one)).toBe(3);
  one.caches.pods.remove(own);
  expect(available(one)).toBe(3);
  one.caches.resourceClaims.remove(held(['gpu-0'], { pod: own }));
  expect(available(one)).toBe(4);
  one.caches.resourceSlices.remove(resourceSlice('n', FOUR));
  expect(available(one)).toBeUndefined();
});

test('nodes with labels and nodes with slices stand in one fleet', () => {
  const { inventory } = inventoryOf({
    nodes: [bareNode('slices'), gpuNode('labels')],
    pools: [POOL, gpuPool('labels')],
    resourceSlices: [resourceSlice('slices', FOUR)],
    deviceClasses: [deviceClass()],
  });
  const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  expect(ones.map(({ pool, available: free }) => [pool, free])).toEqual(
    expect.arrayContaining([
      ['dra', 4],
      ['labels', 8],
    ]),
  );
  expect(ones).toHaveLength(2);
});

/** The pod as the scheduler leaves it once it has made the claim. */
function withClaim(pod: Pod, resourceClaimName: string): Pod {
  return { ...pod, status: { ...pod.status, extendedResourceClaimStatus: { resourceClaimName, requestMappings: [] } } };
}

test('what a pod has of the devices is told by driver, pool and name, with its UUID and its taint', () => {
  const pod = withClaim(bound('p'), 'c');
  const devices = [taintedDevice(gpuDevice('gpu-0')), ...FOUR.slice(1)];
  const { inventory } = fleet({ devices, pods: [pod], claims: [resourceClaim('c', 'n', ['gpu-3', 'gpu-0'], { pod })] });
  const [driver, pool] = ['gpu.nvidia.com', 'n'];
  expect(inventory.devicesOf(pod)).toEqual([
    { driver, pool, device: 'gpu-0', uuid: 'GPU-gpu-0', isTainted: true },
    { driver, pool, device: 'gpu-3', uuid: 'GPU-gpu-3', isTainted: false },
  ]);
});

test('a claim that the scheduler has not given to a pod tells nothing of it, whatever owner it names', () => {
  const pod = bound('p');
  const claims = [resourceClaim('c', 'n', ['gpu-0'], { pod })];
  expect(fleet({ pods: [pod], claims }).inventory.devicesOf(pod)).toEqual([]);
  const named = withClaim(pod, 'c');
  const earlier = { ...named, metadata: { ...named.metadata, uid: 'uid-of-before' } };
  expect(fleet({ pods: [named], claims }).inventory.devicesOf(earlier)).toEqual([]);
  expect(fleet({ pods: [named], claims }).inventory.devicesOf(named)).toHaveLength(1);
});

test('a change of a claim or of a taint names its nodes', () => {
  const pod = withClaim(bound('p'), 'c');
  const { inventory, caches } = fleet({ pods: [pod] });
  const seen: string[][] = [];
  const stop = inventory.onDevices((nodes) => seen.push([...nodes]));
  caches.resourceClaims.upsert(resourceClaim('c', 'n', ['gpu-0'], { pod }));
  const sick = resourceSlice('n', [taintedDevice(gpuDevice('gpu-0')), ...FOUR.slice(1)]);
  caches.resourceSlices.upsert({ ...sick, metadata: { ...sick.metadata, resourceVersion: '2' } });
  stop();
  expect(seen).toEqual([['n'], ['n']]);
  expect(inventory.devicesOf(pod)).toMatchObject([{ device: 'gpu-0', isTainted: true }]);
});

/** Claims that share a device have a part of its capacity each. */
function sharing(name: string, device: string): ResourceClaim {
  const claim = resourceClaim(name, 'n', [device], { deviceClassName: 'shared' });
  const results = claim.status?.allocation?.devices?.results?.map((one) => ({
    ...one,
    shareID: name,
    consumedCapacity: { memory: '10Gi' },
  }));
  return { ...claim, status: { allocation: { devices: { results: results ?? [] } } } };
}

describe('a GPU that several claims may share', () => {
  const shareable = (name: string) => gpuDevice(name, undefined, { allowMultipleAllocations: true });

  test('is not offered, nor are others of its class, however little of it is in use', () => {
    for (const claims of [[], [sharing('a', 'gpu-0')], [sharing('a', 'gpu-0'), sharing('b', 'gpu-0')]]) {
      const one = fleet({ devices: [shareable('gpu-0'), ...FOUR.slice(1)], claims });
      expect(available(one)).toBeUndefined();
    }
  });

  test('takes the slices of the same GPU, once for all that share it', () => {
    const counters = { memory: { value: '40Gi' } };
    const takes = (value: string) => [{ counterSet: 'c', counters: { memory: { value } } }];
    const attributes = { type: { string: 'vgpu' } };
    const vgpu = gpuDevice('vgpu', undefined, {
      attributes,
      consumesCounters: takes('20Gi'),
      allowMultipleAllocations: true,
    });
    const parts = ['a', 'b', 'c', 'd'].map((name) => gpuDevice(name, undefined, { consumesCounters: takes('10Gi') }));
    const pool = { name: 'n', generation: 1, resourceSliceCount: 2 };
    const sets = resourceSlice('n', [], { pool, sharedCounters: [{ name: 'c', counters }] });
    const slices = [{ ...sets, metadata: { name: 'counters' } }, resourceSlice('n', [vgpu, ...parts], { pool })];
    expect(available(fleet({ slices }))).toBe(4);
    for (const sharers of [['x'], ['x', 'y']]) {
      const claims = sharers.map((name) => sharing(name, 'vgpu'));
      expect(available(fleet({ slices, claims }))).toBe(2);
    }
  });
});

function taintRule(deviceSelector: DeviceTaintRule['spec']['deviceSelector'], effect = 'NoSchedule'): DeviceTaintRule {
  const taint = { key: 'example.com/sick', effect };
  return { metadata: { name: 'rule' }, spec: { ...(deviceSelector && { deviceSelector }), taint } };
}

describe('a DeviceTaintRule', () => {
  test.each<[what: string, rule: DeviceTaintRule, free: number]>([
    ['of one device takes it out', taintRule({ driver: 'gpu.nvidia.com', pool: 'n', device: 'gpu-0' }), 3],
    ['that evicts does too', taintRule({ device: 'gpu-0' }, 'NoExecute'), 3],
    ['of a pool takes all of it', taintRule({ pool: 'n' }), 0],
    ['of every device takes all', taintRule({}), 0],
    ['of another pool takes none', taintRule({ pool: 'other', device: 'gpu-0' }), 4],
    ['of another driver takes none', taintRule({ driver: 'gpu.amd.com' }), 4],
    ['of no device takes none', taintRule(undefined), 4],
    ['without an effect on pods takes none', taintRule({}, 'None'), 4],
  ])('%s', (_, rule, free) => {
    const one = fleet();
    expect(available(one)).toBe(4);
    one.caches.deviceTaintRules.upsert(rule);
    expect(available(one) ?? 0).toBe(free);
    one.caches.deviceTaintRules.remove(rule);
    expect(available(one)).toBe(4);
  });

  test('tells of the devices of a pod, and names the nodes', () => {
    const pod = withClaim(bound('p'), 'c');
    const one = fleet({ pods: [pod], claims: [resourceClaim('c', 'n', ['gpu-0'], { pod })] });
    const seen: string[][] = [];
    one.inventory.onDevices((nodes) => seen.push([...nodes]));
    one.caches.deviceTaintRules.upsert(taintRule({ device: 'gpu-0' }));
    expect(seen).toEqual([['n']]);
    expect(one.inventory.devicesOf(pod)).toMatchObject([{ device: 'gpu-0', isTainted: true }]);
  });
});

describe('a class without an extendedResourceName', () => {
  const NAME = 'deviceclass.resource.kubernetes.io/gpu.nvidia.com';
  const unnamed = (name?: string) => deviceClass(name, { extendedResourceName: undefined as never });
  const plugin = { 'nvidia.com/gpu': '4' };

  test('is asked for by the name that each class has', () => {
    const { inventory } = fleet({ classes: [unnamed()] });
    expect(inventory.offers()[0]).toMatchObject({ resourceName: NAME, available: 4, isolation: 'whole' });
  });

  test('is not offered where a device plugin counts the same GPUs by another name', () => {
    const node = bareNode('n', { allocatable: plugin });
    expect(
      available(fleet({ classes: [unnamed()], node: { ...node, status: { ...node.status, capacity: plugin } } })),
    ).toBe(undefined);
  });

  test('says so where its name is too long for a resource', () => {
    const name = `${'a'.repeat(60)}.example`;
    const { inventory } = fleet({ classes: [unnamed(name)] });
    expect(inventory.deviceClassGap(name)).toMatch(
      /has no spec\.extendedResourceName, and its own name is longer than/,
    );
  });
});

test.each([
  ['by its other name', { 'deviceclass.resource.kubernetes.io/gpu.nvidia.com': '1' }, ['gpu-0'], 3],
  [
    'by both names',
    { 'deviceclass.resource.kubernetes.io/gpu.nvidia.com': '1', 'nvidia.com/gpu': '2' },
    FOUR.slice(1).map(({ name }) => name),
    1,
  ],
])('a pod that asks for devices of the class %s has those of its claim, once each', (_, limits, devices, free) => {
  const pod = bound('p');
  const [main, ...others] = pod.spec?.containers ?? [];
  if (main === undefined || pod.spec === undefined) throw new Error('it has no container');
  const containers = [{ ...main, resources: { limits, requests: limits } }, ...others];
  const asking = { ...pod, spec: { ...pod.spec, containers } };
  expect(available(fleet({ pods: [asking], claims: [resourceClaim('c', 'n', devices, { pod })] }))).toBe(free);
});

function migDevice(name: string, profile: string, gpu: string, slices: readonly number[]) {
  const { attributes } = gpuDevice(name);
  const counters = Object.fromEntries(slices.map((slice) => [`memory-${slice}`, { value: '1' }]));
  return gpuDevice(name, undefined, {
    attributes: { ...attributes, type: { string: 'mig' }, profile: { string: profile } },
    capacity: { memory: { value: '10Gi' } },
    consumesCounters: [{ counterSet: gpu, counters }],
  });
}

/** Two parts of a GPU, whose slices are for rent; claims have some. */
function slicesFleet(profile: string, allocated: readonly string[] = [], driver = 'gpu.nvidia.com') {
  const counters = Object.fromEntries([0, 1, 2, 3].map((slice) => [`memory-${slice}`, { value: '1' }]));
  const pool = { name: 'n', generation: 1, resourceSliceCount: 2 };
  const sets = resourceSlice('n', [], { driver, pool, sharedCounters: [{ name: 'c', counters }] });
  const whole = gpuDevice('gpu-0', undefined, {
    consumesCounters: [{ counterSet: 'c', counters }],
  });
  const parts = [0, 1, 2, 3].map((slice) => migDevice(`mig-${slice}`, profile, 'c', [slice]));
  const wide = migDevice('wide-0', '2g.20gb', 'c', [0, 1]);
  const attribute = `device.attributes['${driver}']`;
  const expression = `device.driver == '${driver}' && ${attribute}.type == 'mig' && ${attribute}.profile == '${profile}'`;
  return fleet({
    classes: [
      deviceClass(undefined, { selectors: [{ cel: { expression } }], extendedResourceName: 'example.com/mig' }),
    ],
    slices: [
      { ...sets, metadata: { name: 'counters' } },
      resourceSlice('n', [whole, ...parts, wide], { driver, pool }),
    ],
    claims: allocated.map((name) => resourceClaim(name, 'n', [name], { deviceClassName: 'other' })),
  });
}

describe('slices of one MIG profile', () => {
  test.each(['gpu.nvidia.com', 'gpu.example.org'])('are offered as slices, by their part of a GPU, of %s', (driver) => {
    expect(slicesFleet('1g.10gb+me', [], driver).inventory.offers()[0]).toMatchObject({
      product: `${A100}-MIG-1g.10gb.me`,
      isolation: 'mig',
      migProfile: '1g.10gb.me',
      memoryMb: 10_240,
      available: 4,
    });
  });

  test.each([
    [['wide-0'], 2],
    [['mig-3'], 3],
    [['gpu-0'], 0],
    [['wide-0', 'mig-2'], 1],
  ])('are free beside those that %s leave', (allocated, free) => {
    expect(available(slicesFleet('1g.10gb', allocated))).toBe(free);
  });

  test('are not sold under a profile that is none', () => {
    expect(slicesFleet('half').inventory.offers()).toEqual([]);
  });
});

describe('preemption of devices', () => {
  const ON_DEMAND = placeRequest({ gpu: { count: 1, product: A100 } });

  /** One instance on each device of a node, the last the newest; those of these devices are tainted. */
  function full(...tainted: string[]) {
    const pods = FOUR.map(({ name }) => bound(`${name}-1`, 'n', { instanceUid: `uid-${name}` }));
    const one = fleet({
      devices: FOUR.map((device) => (tainted.includes(device.name) ? taintedDevice(device) : device)),
      pods,
      claims: pods.map((pod, index) => resourceClaim(`c${index}`, 'n', [`gpu-${index}`], { pod })),
    });
    for (const [index, { name }] of FOUR.entries()) {
      const claim = claimOn('n', { pool: 'dra', grantedAt: `2026-01-01T0${index}:00:00Z` });
      one.caches.instances.upsert(gpuInstance(name, { type: 'Interruptible' }, { claim, diskPersistent: true }));
    }
    return one;
  }

  const victims = (one: ReturnType<typeof fleet>) =>
    one.inventory.preempt(ON_DEMAND)?.victims.map(({ key }) => key.replace('default/', ''));
  const byPreemption = ({ inventory }: ReturnType<typeof fleet>) =>
    inventory.offers().find(({ gpuCount }) => gpuCount === 1)?.availableByPreemption;

  test.each([
    [[], ['gpu-3'], 4],
    [['gpu-3'], ['gpu-2'], 3],
    [['gpu-1', 'gpu-2', 'gpu-3'], ['gpu-0'], 1],
    [['gpu-0', 'gpu-1', 'gpu-2', 'gpu-3'], undefined, 0],
  ])('ends nobody for a device that goes to nobody: with %j tainted, %j', (tainted, gone, places) => {
    const one = full(...tainted);
    expect(victims(one)).toEqual(gone);
    expect(byPreemption(one)).toBe(places);
  });

  test('waits for nobody who leaves such a device', () => {
    const one = full('gpu-3');
    const last = one.caches.instances.store.get('default/gpu-3');
    if (last === undefined) throw new Error('There is no such instance.');
    const ending = { reason: 'Stopped' as const, message: '', at: '2026-01-01T00:00:00Z' };
    const metadata = { ...last.metadata, resourceVersion: '2' };
    one.caches.instances.upsert({ ...last, metadata, status: { ...last.status, ending } });
    expect(victims(one)).toEqual(['gpu-2']);
  });

  test('waits for the claim of a pod that has ended, whose instance is gone from the node', () => {
    const one = full();
    const [pod] = [...one.caches.pods.store.values()];
    const [instance] = [...one.caches.instances.store.values()];
    if (pod === undefined || instance === undefined) throw new Error('The node is empty.');
    one.caches.pods.remove(pod);
    one.caches.instances.remove(instance);
    expect('place' in one.inventory.grant(ON_DEMAND)).toBe(false);
    expect(victims(one)).toEqual([]);
  });
});
