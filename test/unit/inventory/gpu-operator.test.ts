import { describe, expect, test } from 'vitest';
import { isolationOn } from '../../../src/inventory/nodes/isolation.ts';
import { nodeFacts } from '../../../src/inventory/nodes/node-view.ts';
import { poolIsolation } from '../../../src/inventory/pool-isolation.ts';
import { deviceNode, gpuInstance, gpuNode, gpuPool, inventoryOf } from '../../support/inventory-world.ts';

type Labels = Readonly<Record<string, string>>;

/** The labels of GPU Feature Discovery for one resource, by the ends of their names. */
function resource(name: string, ends: Labels): Labels {
  return Object.fromEntries(Object.entries(ends).map(([end, value]) => [`nvidia.com/${name}.${end}`, value]));
}

/**
 * What NVIDIA's GPU Operator 25.10 (device plugin 0.18) and 26.3 and 26.7 (0.19, 0.20) put on a node whatever its GPUs are.
 * Sources: NVIDIA/gpu-operator, controllers/state_manager.go; NVIDIA/k8s-device-plugin, internal/lm/nvml.go.
 */
const OPERATOR: Labels = {
  'nvidia.com/gpu.present': 'true',
  'nvidia.com/gpu.deploy.device-plugin': 'true',
  'nvidia.com/gpu.deploy.gpu-feature-discovery': 'true',
  'nvidia.com/gpu.deploy.mig-manager': 'true',
  'nvidia.com/gpu-driver-upgrade-state': 'upgrade-done',
  'nvidia.com/cuda.driver-version.full': '580.105.08',
  'nvidia.com/cuda.runtime-version.full': '13.0',
  'nvidia.com/gpu.machine': 'PowerEdge-XE9680',
  'nvidia.com/gpu.mode': 'compute',
  'nvidia.com/mps.capable': 'false',
};

const SINGLE = { 'nvidia.com/mig.capable': 'true', 'nvidia.com/mig.strategy': 'single' };
const MIXED = { 'nvidia.com/mig.capable': 'true', 'nvidia.com/mig.strategy': 'mixed' };
const H100 = 'NVIDIA-H100-80GB-HBM3';
const RTX_PRO = 'NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition';
const WHOLE_H100 = { count: '8', memory: '81559', replicas: '1', 'sharing-strategy': 'none' };
/** Under `mixed` the GPUs in MIG mode are counted too, and are shared by nobody. */
const IN_MIG_MODE = { count: '1', memory: '81559', replicas: '0', 'sharing-strategy': 'none' };

/** Product, memory in MiB, isolation, profile, price of an hour where a whole GPU costs 1, and free places for one. */
type Told = [
  product: string,
  memoryMb: number,
  isolation: string,
  profile: string | undefined,
  price: string,
  free: number,
];

interface Fleet {
  name: string;
  labels: Labels;
  /** What the device plugin has registered at the kubelet. */
  devices: Record<string, string>;
  offers: Told[];
}

const FLEETS: Fleet[] = [
  {
    name: 'whole GPUs, with MIG off under the strategy `single`, which the operator has by default',
    labels: { ...SINGLE, ...resource('gpu', { product: H100, ...WHOLE_H100 }) },
    devices: { 'nvidia.com/gpu': '8' },
    offers: [[H100, 81_559, 'whole', undefined, '1.00', 8]],
  },
  {
    name: 'MIG `single`: the resource of whole GPUs counts slices',
    labels: {
      ...SINGLE,
      ...resource('gpu', {
        product: `${H100}-MIG-1g.10gb`,
        count: '56',
        memory: '9984',
        replicas: '1',
        'sharing-strategy': 'none',
        'slices.gi': '1',
        'slices.ci': '1',
      }),
    },
    devices: { 'nvidia.com/gpu': '56' },
    offers: [[`${H100}-MIG-1g.10gb`, 9984, 'mig', '1g.10gb', '0.142857', 56]],
  },
  {
    name: 'MIG `single` whose layouts differ: the plugin fails, and what the kubelet remembers is not for rent',
    labels: {
      ...SINGLE,
      ...resource('gpu', {
        product: `${H100}-MIG-INVALID`,
        count: '0',
        memory: '0',
        replicas: '0',
        'sharing-strategy': '',
      }),
    },
    devices: { 'nvidia.com/gpu': '56' },
    offers: [],
  },
  {
    name: 'MIG `single` with compute instances, which share the memory of their slice',
    labels: { ...SINGLE, ...resource('gpu', { product: `${H100}-MIG-1c.3g.40gb`, count: '6', memory: '40448' }) },
    devices: { 'nvidia.com/gpu': '6' },
    offers: [],
  },
  {
    name: 'MIG `single`, time-sliced',
    labels: {
      ...SINGLE,
      ...resource('gpu', {
        product: `${H100}-MIG-1g.10gb-SHARED`,
        count: '28',
        memory: '9984',
        replicas: '2',
        'sharing-strategy': 'time-slicing',
      }),
    },
    devices: { 'nvidia.com/gpu': '56' },
    offers: [[`${H100}-MIG-1g.10gb-SHARED`, 9984, 'time_sliced', '1g.10gb', '0.071429', 56]],
  },
  {
    name: 'MIG `mixed`: a GPU in slices of two sizes',
    labels: {
      ...MIXED,
      ...resource('gpu', { product: H100, ...IN_MIG_MODE }),
      ...resource('mig-1g.10gb', { product: `${H100}-MIG-1g.10gb`, count: '4', memory: '9984', replicas: '1' }),
      ...resource('mig-3g.40gb', { product: `${H100}-MIG-3g.40gb`, count: '1', memory: '40448', replicas: '1' }),
    },
    devices: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb': '4', 'nvidia.com/mig-3g.40gb': '1' },
    offers: [
      [`${H100}-MIG-1g.10gb`, 9984, 'mig', '1g.10gb', '0.142857', 4],
      [`${H100}-MIG-3g.40gb`, 40_448, 'mig', '3g.40gb', '0.428571', 1],
    ],
  },
  {
    name: 'MIG `mixed` with compute instances',
    labels: {
      ...MIXED,
      ...resource('gpu', { product: H100, ...IN_MIG_MODE }),
      ...resource('mig-1c.3g.40gb', { product: `${H100}-MIG-1c.3g.40gb`, count: '6', memory: '40448' }),
    },
    devices: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1c.3g.40gb': '6' },
    offers: [],
  },
  {
    name: 'MIG of a GPU with four compute slices, with and without graphics and media engines',
    labels: {
      ...MIXED,
      ...resource('gpu', { product: RTX_PRO, ...IN_MIG_MODE, memory: '97887' }),
      ...resource('mig-1g.24gb.gfx', { product: `${RTX_PRO}-MIG-1g.24gb.gfx`, count: '1', memory: '24064' }),
      ...resource('mig-1g.24gb.me.all', { product: `${RTX_PRO}-MIG-1g.24gb.me.all`, count: '1', memory: '24064' }),
      ...resource('mig-2g.48gb-me', { product: `${RTX_PRO}-MIG-2g.48gb-me`, count: '1', memory: '48512' }),
    },
    devices: {
      'nvidia.com/gpu': '0',
      'nvidia.com/mig-1g.24gb.gfx': '1',
      'nvidia.com/mig-1g.24gb.me.all': '1',
      'nvidia.com/mig-2g.48gb-me': '1',
    },
    offers: [
      [`${RTX_PRO}-MIG-1g.24gb.gfx`, 24_064, 'mig', '1g.24gb.gfx', '0.25', 1],
      [`${RTX_PRO}-MIG-1g.24gb.me.all`, 24_064, 'mig', '1g.24gb.me.all', '0.25', 1],
      [`${RTX_PRO}-MIG-2g.48gb-me`, 48_512, 'mig', '2g.48gb-me', '0.50', 1],
    ],
  },
  {
    name: 'MIG `single` of such a GPU',
    labels: {
      ...SINGLE,
      ...resource('gpu', { product: 'NVIDIA-A30-MIG-1g.6gb', count: '4', memory: '5952', replicas: '1' }),
    },
    devices: { 'nvidia.com/gpu': '4' },
    offers: [['NVIDIA-A30-MIG-1g.6gb', 5952, 'mig', '1g.6gb', '0.25', 4]],
  },
  {
    name: 'time-slicing: each replica may use all of the memory',
    labels: {
      ...SINGLE,
      ...resource('gpu', {
        product: `${H100}-SHARED`,
        count: '8',
        memory: '81559',
        replicas: '4',
        'sharing-strategy': 'time-slicing',
      }),
    },
    devices: { 'nvidia.com/gpu': '32' },
    offers: [[`${H100}-SHARED`, 81_559, 'time_sliced', undefined, '0.25', 32]],
  },
  {
    name: 'time-slicing under another name',
    labels: {
      ...SINGLE,
      ...resource('gpu', {
        product: H100,
        count: '8',
        memory: '81559',
        replicas: '4',
        'sharing-strategy': 'time-slicing',
      }),
    },
    devices: { 'nvidia.com/gpu': '0', 'nvidia.com/gpu.shared': '32' },
    offers: [[H100, 81_559, 'time_sliced', undefined, '0.25', 32]],
  },
  {
    name: 'MPS: each replica has its part of the memory',
    labels: {
      ...SINGLE,
      'nvidia.com/mps.capable': 'true',
      ...resource('gpu', {
        product: `${H100}-SHARED`,
        count: '8',
        memory: '81559',
        replicas: '10',
        'sharing-strategy': 'mps',
      }),
    },
    devices: { 'nvidia.com/gpu': '80' },
    offers: [[`${H100}-SHARED`, 8155, 'time_sliced', undefined, '0.10', 80]],
  },
  {
    name: 'MPS under another name',
    labels: {
      ...SINGLE,
      'nvidia.com/mps.capable': 'true',
      ...resource('gpu', { product: H100, count: '8', memory: '81559', replicas: '10', 'sharing-strategy': 'mps' }),
    },
    devices: { 'nvidia.com/gpu': '0', 'nvidia.com/gpu.shared': '80' },
    offers: [[H100, 8155, 'time_sliced', undefined, '0.10', 80]],
  },
];

const PRICES = [{ product: '*', onDemand: '1', interruptible: '0.5' }];

function operatorNode({ labels, devices }: Fleet) {
  return deviceNode('gpu-0', { ...OPERATOR, ...labels }, { allocatable: devices });
}

describe("nodes of NVIDIA's GPU Operator", () => {
  test.each(FLEETS)('$name', (fleet) => {
    const world = { nodes: [operatorNode(fleet)], pools: [gpuPool('p', { prices: PRICES })] };
    const ones = inventoryOf(world)
      .inventory.offers()
      .filter(({ gpuCount }) => gpuCount === 1);
    expect(
      ones.map((offer): Told => {
        const { product, memoryMb, isolation, migProfile, prices, available } = offer;
        return [product, memoryMb, isolation, migProfile, prices.onDemand, available];
      }),
    ).toEqual(fleet.offers);
  });

  test.each(FLEETS.filter(({ offers }) => offers.some(([, , isolation]) => isolation === 'time_sliced')))(
    'no shared GPU is sold in several pieces, or passes for isolated: $name',
    (fleet) => {
      const node = operatorNode(fleet);
      const pool = gpuPool('p', { prices: PRICES });
      const offers = inventoryOf({ nodes: [node], pools: [pool] }).inventory.offers();
      expect(offers.every(({ gpuCount }) => gpuCount === 1)).toBe(true);
      expect(poolIsolation([nodeFacts(node, [{ name: 'p', spec: pool.spec }])])).toMatchObject({
        status: 'False',
        reason: 'SharedGPUs',
      });
    },
  );

  test('an instance may ask for each profile that is offered', () => {
    const profiles = FLEETS.flatMap(({ offers }) => offers.flatMap(([, , , profile]) => profile ?? []));
    expect(
      profiles.map((migProfile) => gpuInstance('one', { gpu: { count: 1, migProfile } }).spec.gpu?.migProfile),
    ).toEqual(profiles);
  });

  // The operator makes a RuntimeClass for each handler of its toolkit: assets/pre-requisites of NVIDIA/gpu-operator.
  test.each(['nvidia', 'nvidia-cdi', 'nvidia-legacy'])('a pool runs its instances with the RuntimeClass %s', (name) => {
    const userNamespaces = { '': true, nvidia: true, 'nvidia-cdi': true, 'nvidia-legacy': true };
    const pool = gpuPool('p', { runtimeClassName: name, prices: PRICES });
    const node = gpuNode('gpu-0', { labels: OPERATOR, userNamespaces });
    const facts = nodeFacts(node, [{ name: 'p', spec: pool.spec }]);
    expect(isolationOn(facts)).toMatchObject({ runtimeClassName: name, userNamespaces: false });
    expect(inventoryOf({ nodes: [node], pools: [pool] }).inventory.offers()[0]?.available).toBe(8);
  });
});
