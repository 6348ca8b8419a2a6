import { expect, test } from 'vitest';
import type { DeviceClass, ResourceClaim, ResourceSlice } from '../../../src/kube/devices.ts';
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
import { claimOn, gpuInstance, gpuNode, gpuPod, gpuPool, inventoryOf } from '../../support/inventory-world.ts';

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
    'devices that several claims share are not sold',
    { devices: FOUR.map((one) => ({ ...one, allowMultipleAllocations: true })) },
    undefined,
  ],
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
    'the class has no name for pods',
    [deviceClass('gpu.nvidia.com', { extendedResourceName: undefined as never })],
    'has no spec.extendedResourceName',
  ],
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
