import { expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/types.ts';
import { claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';
import { bareNode, deviceClass, gpuDevice, resourceSlice } from '../../support/device-world.ts';
import { each, expectOnly, findingsOf, objects, type Planted } from '../../support/sound-installation.ts';

type Shape = Parameters<typeof gpuNode>[1];
const CONFIRMED = { 'berth.dev/gpu-isolation': 'enforced' };
const PRICES = [{ product: '*', onDemand: '2.00', interruptible: '1.00' }];

const node = ({ labels, ...shape }: NonNullable<Shape> = {}): Planted => ({
  objects: () => ({ nodes: [gpuNode('gpu-0', { ...shape, labels: { ...CONFIRMED, ...labels } })] }),
});
const pools = (...all: Parameters<typeof gpuPool>[]): Planted => ({
  objects: () => ({ pools: all.map((one) => gpuPool(...one)) }),
});
const pool = (spec: object): Planted => pools(['main', { prices: PRICES, ...spec }]);

/** A node more, whose GPUs are in ResourceSlices alone. */
const sliced = (more: (sound: { nodes: readonly KubeObject[]; pools: readonly KubeObject[] }) => object = () => ({})) =>
  objects((sound) => ({
    nodes: [...sound.nodes, bareNode('gpu-1', { labels: { dra: 'yes', ...CONFIRMED } })],
    resourceSlices: [resourceSlice('gpu-1', [gpuDevice('gpu-0')])],
    deviceClasses: [deviceClass()],
    ...more(sound),
  }));
const draPool = gpuPool('dra', {
  prices: PRICES,
  nodeSelector: { dra: 'yes' },
  devices: { deviceClassName: 'gpu.nvidia.com' },
});

const failures = { count: 1, lastTime: '2026-11-23T11:58:00Z', nodes: ['gpu-0'] };
const failing = ['a', 'b', 'c'].map((name) => {
  const made = gpuInstance(name, {}, { failures });
  return { ...made, metadata: { ...made.metadata, namespace: 'tenant' } };
});

test.each<[fault: string, found: string, planted: Planted]>([
  [
    'no device plugin',
    'gpu-nodes NoGPUs error',
    node({ labels: { 'nvidia.com/gpu.present': 'true' }, allocatable: { 'nvidia.com/gpu': '0' } }),
  ],
  [
    'a card that only the PCI bus shows',
    'gpu-nodes NoGPUs error',
    node({
      labels: { 'feature.node.kubernetes.io/pci-0302_10de.present': 'true' },
      allocatable: { 'nvidia.com/gpu': '0' },
    }),
  ],
  [
    "an architecture that Berth's tools are not built for",
    'gpu-nodes Architecture warning',
    node({ labels: { 'kubernetes.io/arch': 'ppc64le' } }),
  ],
  [
    'all GPUs unhealthy',
    'gpu-nodes NoHealthyGPUs error',
    each('nodes', (one: { status: object }) => ({
      ...one,
      status: { ...one.status, allocatable: { 'nvidia.com/gpu': '0' }, capacity: { 'nvidia.com/gpu': '8' } },
    })),
  ],
  [
    'one GPU unhealthy',
    'gpu-nodes UnhealthyGPUs warning',
    each('nodes', (one: { status: { allocatable: object } }) => ({
      ...one,
      status: {
        ...one.status,
        allocatable: { ...one.status.allocatable, 'nvidia.com/gpu': '7' },
        capacity: { 'nvidia.com/gpu': '8' },
      },
    })),
  ],
  [
    'a node that no pool selects',
    'gpu-nodes NoPool warning',
    objects((sound) => ({
      nodes: ['a', 'b'].map((zone) => gpuNode(`gpu-${zone}`, { labels: { zone, ...CONFIRMED } })),
      pools: [gpuPool('main', { prices: PRICES, nodeSelector: { zone: 'a' } })],
      exporters: sound.exporters.flatMap((one) =>
        ['a', 'b'].map((zone) => ({ ...one, spec: { nodeName: `gpu-${zone}` } })),
      ),
    })),
  ],
  ['a pool of larger sizes', 'gpu-nodes NoSize error', pool({ sizes: [16] })],
  [
    'a cordon',
    'gpu-nodes Cordoned warning',
    node({ cordoned: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] }),
  ],
  ['a node that is not Ready', 'gpu-nodes NotReady error', node({ ready: false })],
  [
    'a taint that no pool tolerates',
    'gpu-nodes Tainted warning',
    node({ taints: [{ key: 'team', value: 'ml', effect: 'NoSchedule' }] }),
  ],
  ['no user namespaces', 'gpu-nodes UserNamespaces error', pool({ userNamespaces: 'Required' })],
  ['starts that keep failing', 'gpu-nodes Quarantined warning', objects(() => ({ instances: failing }))],
  [
    'GPUs that were switched under an instance',
    'gpu-nodes Switched warning',
    objects(({ nodes }) => ({
      instances: nodes.map(({ metadata }) => {
        const slice = { resourceName: 'nvidia.com/mig-1g.10gb', isolation: 'mig', migProfile: '1g.10gb' } as const;
        return gpuInstance('slice', {}, { claim: claimOn(metadata.name, slice), incarnation: 1 });
      }),
    })),
  ],
  [
    'no product label',
    'node-labels NoProduct warning',
    objects(({ nodes }) => ({
      nodes: nodes.map((one) => ({ ...one, metadata: { ...one.metadata, labels: { ...CONFIRMED } } })),
    })),
  ],
  ['no memory label', 'node-labels NoMemory warning', node({ labels: { 'nvidia.com/gpu.memory': '' } })],
  [
    'a layout of MIG that failed',
    'node-labels MIGConfigFailed error',
    node({ labels: { 'nvidia.com/mig.config.state': 'failed' } }),
  ],
  [
    'two strategies of MIG',
    'node-labels MIGStrategy warning',
    node({
      labels: { 'nvidia.com/mig.strategy': 'single', 'nvidia.com/mig-1g.10gb.memory': '9856' },
      allocatable: { 'nvidia.com/mig-1g.10gb': '7' },
    }),
  ],
  [
    'a GPU that is gone',
    'node-labels CountDiffers warning',
    each('nodes', (one: { status: { allocatable: object } }) => ({
      ...one,
      status: {
        allocatable: { ...one.status.allocatable, 'nvidia.com/gpu': '7' },
        capacity: { 'nvidia.com/gpu': '7' },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    })),
  ],
  ['GPUs in slices that no pool sells', 'devices NotSold warning', sliced()],
  [
    'a device plugin and a driver of devices for one node',
    'devices CountedTwice error',
    objects(() => ({ resourceSlices: [resourceSlice('gpu-0', [gpuDevice('gpu-0')])] })),
  ],
  [
    'a pool whose DeviceClass is not there',
    'devices DeviceClassNotSold error',
    objects(({ pools: sound }) => ({ pools: [...sound, draPool], deviceClasses: [] })),
  ],
  ['no word about the runtime', 'isolation NotConfirmed warning', node({ labels: { 'berth.dev/gpu-isolation': '' } })],
  ['GPUs that are shared', 'isolation SharedGPUs warning', node({ labels: { 'nvidia.com/gpu.replicas': '4' } })],
  [
    'two pools for one node',
    'pools Overlap warning',
    objects(({ nodes }) => ({
      nodes: [
        ...nodes.map((one) => ({
          ...one,
          metadata: { ...one.metadata, labels: { ...one.metadata.labels, a: '1', b: '1' } },
        })),
        gpuNode('gpu-1', { labels: { b: '1', ...CONFIRMED } }),
      ],
      exporters: ['gpu-0', 'gpu-1'].map(
        (nodeName) => ({ metadata: { name: nodeName }, spec: { nodeName } }) as KubeObject,
      ),
      pools: [
        gpuPool('first', { prices: PRICES, nodeSelector: { a: '1' } }),
        gpuPool('second', { prices: PRICES, nodeSelector: { b: '1' } }),
      ],
    })),
  ],
  [
    'a pool without nodes',
    'pools NoNodes warning',
    pools(['main', { prices: PRICES }], ['empty', { prices: PRICES, nodeSelector: { no: 'where' } }]),
  ],
  ['no price', 'pools NoPrice warning', pool({ prices: [] })],
  ['no pool', 'pools NoPools error', pools()],
  [
    'a StorageClass that is not there',
    'pools StorageClassMissing error',
    pool({ disk: { maxGb: 10, storageClassName: 'gone' } }),
  ],
  ['no default StorageClass', 'pools NoStorageClass warning', objects(() => ({ storageClasses: [] }))],
  ['a RuntimeClass that is not there', 'pools RuntimeClassMissing error', pool({ runtimeClassName: 'kata' })],
])('%s is found, and nothing else: %s', (_fault, expected, planted) => expectOnly(planted, expected));

test.each<[harmless: string, planted: Planted]>([
  [
    'a taint that the pool tolerates',
    objects((sound) => ({
      ...node({ taints: [{ key: 'team', effect: 'NoSchedule' }] }).objects?.(sound),
      pools: [gpuPool('main', { prices: PRICES, tolerations: [{ key: 'team', operator: 'Exists' }] })],
    })),
  ],
  ['GPUs in slices that a pool sells', sliced(({ pools: sound }) => ({ pools: [...sound, draPool] }))],
  [
    'devices that are no GPUs',
    sliced(() => ({ resourceSlices: [resourceSlice('gpu-1', [gpuDevice('nic')], { driver: 'nic.example.com' })] })),
  ],
  [
    'a node without GPUs',
    objects(({ nodes }) => ({
      nodes: [...nodes, { metadata: { name: 'cpu-0' }, status: { allocatable: { cpu: '4' } } } as KubeObject],
    })),
  ],
  [
    'a failure of one tenant among two',
    objects((sound) => ({
      instances: [...failing.slice(0, 2), gpuInstance('other')],
      namespaces: [...sound.namespaces, { metadata: { name: 'default', labels: { 'berth.dev/tenant': 'true' } } }],
      tenantLimits: [...sound.tenantLimits, { metadata: { name: 'berth', namespace: 'default' } }],
      quotas: [...sound.quotas, { metadata: { name: 'berth', namespace: 'default' } }],
      networkPolicies: [
        ...sound.networkPolicies,
        {
          metadata: { name: 'all', namespace: 'default' },
          spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
        } as KubeObject,
      ],
    })),
  ],
])('%s is no fault', (_name, planted) => expect(findingsOf(planted)).toEqual([]));

test.each([
  ['team', 'kubectl patch gpupool main '],
  ['node.kubernetes.io/disk-pressure', 'kubectl describe node gpu-0 '],
  ['node.cloudprovider.kubernetes.io/uninitialized', 'kubectl describe node gpu-0 '],
  ['ToBeDeletedByClusterAutoscaler', 'kubectl describe node gpu-0 '],
  ['karpenter.sh/disrupted', 'kubectl describe node gpu-0 '],
])('of the taint %s it says: %s', (key, remedy) => {
  const found = findingsOf(node({ taints: [{ key, effect: 'NoSchedule' }] }));
  expect(found.map((one) => [one.reason, one.remedy.startsWith(remedy)])).toEqual([['Tainted', true]]);
});

test('what a pool requires to keep tenants apart from nodes, no line switches off', () => {
  const [found] = findingsOf(pool({ userNamespaces: 'Required' }));
  expect(found?.remedy).toMatch(/^kubectl get node gpu-0 .*root in an instance is root on its node$/);
});
