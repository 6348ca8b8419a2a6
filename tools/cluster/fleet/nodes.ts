import type { Node } from '../../../src/kube/types.ts';
import { type Devices, devicesOf, type Gpu } from './labels.ts';
import { MAX_1550, MI300X } from './makers.ts';

/** A simulated machine and what is special about it. */
interface Machine {
  name: string;
  devices: Devices;
  cpu: number;
  memoryGi: number;
  diskGi: number;
  /** Key of the taint that many clusters put on their GPU nodes. */
  taint?: string;
  cordoned?: true;
  dead?: true;
}

const H100: Gpu = { product: 'NVIDIA-H100-80GB-HBM3', memory: 81_559, family: 'hopper', compute: '9.0', count: 8 };
const A100: Gpu = { product: 'NVIDIA-A100-SXM4-80GB', memory: 81_920, family: 'ampere', compute: '8.0', count: 8 };
const L40S: Gpu = { product: 'NVIDIA-L40S', memory: 46_068, family: 'ada-lovelace', compute: '8.9', count: 4 };
const T4: Gpu = { product: 'Tesla-T4', memory: 15_360, family: 'turing', compute: '7.5', count: 2, replicas: 4 };

/** Two A100: one is divided into seven small MIG devices, the other into two large ones. */
const A100_MIG: Gpu = {
  ...A100,
  count: 2,
  mig: [
    { profile: '1g.10gb', count: 7, memory: 9728, multiprocessors: 14, slices: 1, copyEngines: 1, decoders: 0 },
    { profile: '3g.40gb', count: 2, memory: 40_192, multiprocessors: 42, slices: 3, copyEngines: 3, decoders: 2 },
  ],
};

const MACHINES: readonly Machine[] = [
  { name: 'sim-h100-0', devices: devicesOf(H100), cpu: 192, memoryGi: 2000, diskGi: 7000, taint: 'nvidia.com/gpu' },
  { name: 'sim-h100-1', devices: devicesOf(H100), cpu: 192, memoryGi: 2000, diskGi: 7000, taint: 'nvidia.com/gpu' },
  { name: 'sim-a100-0', devices: devicesOf(A100), cpu: 128, memoryGi: 1000, diskGi: 4000 },
  { name: 'sim-a100-1', devices: devicesOf(A100), cpu: 128, memoryGi: 1000, diskGi: 4000 },
  { name: 'sim-l40s-0', devices: devicesOf(L40S), cpu: 64, memoryGi: 512, diskGi: 3000 },
  { name: 'sim-a100-mig-0', devices: devicesOf(A100_MIG), cpu: 64, memoryGi: 512, diskGi: 2000 },
  { name: 'sim-t4-shared-0', devices: devicesOf(T4), cpu: 32, memoryGi: 128, diskGi: 1000 },
  { name: 'sim-l40s-cordoned-0', devices: devicesOf(L40S), cpu: 64, memoryGi: 512, diskGi: 3000, cordoned: true },
  {
    name: 'sim-h100-dead-0',
    devices: devicesOf(H100),
    cpu: 192,
    memoryGi: 2000,
    diskGi: 7000,
    taint: 'nvidia.com/gpu',
    dead: true,
  },
];

/** Machines with GPUs of other makers. */
const OTHERS: readonly Machine[] = [
  { name: 'sim-mi300x-0', devices: MI300X, cpu: 192, memoryGi: 2000, diskGi: 7000, taint: 'amd.com/gpu' },
  { name: 'sim-max1550-0', devices: MAX_1550, cpu: 96, memoryGi: 1000, diskGi: 4000 },
];

/**
 * The simulated GPU nodes of the local cluster.
 * @param closed whether all of them have the taint of their GPUs, so that only pods with GPUs come to them
 */
export function fleetNodes(closed: boolean): Node[] {
  return MACHINES.map((machine) => nodeOf(machine, closed));
}

/** Simulated nodes with GPUs of other makers than NVIDIA: they need pools of their own. */
export function otherMakersNodes(closed: boolean): Node[] {
  return OTHERS.map((machine) => nodeOf(machine, closed));
}

function nodeOf({ name, devices, cpu, memoryGi, diskGi, ...special }: Machine, closed: boolean): Node {
  const taint = special.taint ?? (closed ? Object.keys(devices.resources)[0] : undefined);
  const resources = {
    cpu: String(cpu),
    memory: `${memoryGi}Gi`,
    'ephemeral-storage': `${diskGi}Gi`,
    pods: '110',
    ...devices.resources,
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      // kwok makes nodes with this annotation Ready and sends their heartbeats. A dead node has none.
      annotations: special.dead ? {} : { 'kwok.x-k8s.io/node': 'fake' },
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'berth.dev/simulated': 'true',
        ...devices.labels,
      },
    },
    spec: {
      ...(special.cordoned ? { unschedulable: true } : {}),
      ...(taint === undefined ? {} : { taints: [{ key: taint, value: 'present', effect: 'NoSchedule' }] }),
    },
    status: { capacity: resources, allocatable: resources, ...(special.dead ? { conditions: [DEAD] } : {}) },
  };
}

const DEAD = { type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: 'the container runtime is down' };
