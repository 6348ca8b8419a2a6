/** What a node says of its GPUs: the labels, and the resources of the device plugin. */
export interface Devices {
  labels: Readonly<Record<string, string>>;
  resources: Readonly<Record<string, string>>;
}

/** The GPUs of NVIDIA of a node, which are all of one kind. */
export interface Gpu {
  /** Product as GPU Feature Discovery spells it: the driver's name with dashes. */
  product: string;
  /** MiB of one GPU, as the driver reports it. */
  memory: number;
  family: string;
  /** Compute capability, `major.minor`. */
  compute: string;
  count: number;
  /** How many pods share one GPU by time-slicing. */
  replicas?: number;
  /** MIG devices of the node under the mixed strategy. */
  mig?: readonly MigDevices[];
}

interface MigDevices {
  /** Profile such as `1g.10gb`. */
  profile: string;
  count: number;
  /** MiB of one device. */
  memory: number;
  multiprocessors: number;
  slices: number;
  copyEngines: number;
  decoders: number;
}

const DRIVER = ['580', '95', '05'] as const;
/** The version of the driver as DRA has it: without zeros before its numbers. */
export const DRIVER_VERSION = DRIVER.map(Number).join('.');
const CUDA = ['13', '0'] as const;
const MIG_FAMILIES = new Set(['ampere', 'hopper']);

/**
 * The labels that GPU Feature Discovery writes for these GPUs.
 * Source: NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery/README.md, sections "Generated Labels" and "MIG 'mixed'
 * strategy"; sharing labels and the -SHARED suffix from its main README, section "Shared Access to GPUs".
 */
export function gpuLabels(gpu: Gpu): Record<string, string> {
  const { product, replicas = 1, mig = [] } = gpu;
  const [computeMajor = '', computeMinor = ''] = gpu.compute.split('.');
  const shared = replicas > 1;
  const values: Record<string, string | number> = {
    'cuda.driver-version.full': DRIVER.join('.'),
    'cuda.driver-version.major': DRIVER[0],
    'cuda.driver-version.minor': DRIVER[1],
    'cuda.driver-version.revision': DRIVER[2],
    'cuda.driver.major': DRIVER[0],
    'cuda.driver.minor': DRIVER[1],
    'cuda.driver.rev': DRIVER[2],
    'cuda.runtime-version.full': CUDA.join('.'),
    'cuda.runtime-version.major': CUDA[0],
    'cuda.runtime-version.minor': CUDA[1],
    'cuda.runtime.major': CUDA[0],
    'cuda.runtime.minor': CUDA[1],
    'gpu.compute.major': computeMajor,
    'gpu.compute.minor': computeMinor,
    'gpu.count': gpu.count,
    'gpu.family': gpu.family,
    'gpu.machine': 'Berth-simulated',
    'gpu.memory': gpu.memory,
    'gpu.mode': 'compute',
    'gpu.present': 'true',
    'gpu.product': shared ? `${product}-SHARED` : product,
    'gpu.replicas': replicas,
    'gpu.sharing-strategy': shared ? 'time-slicing' : 'none',
    'mig.capable': String(MIG_FAMILIES.has(gpu.family)),
    'mig.strategy': mig.length > 0 ? 'mixed' : 'single',
    'mps.capable': 'false',
  };
  for (const devices of mig) Object.assign(values, migLabels(product, devices));
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`nvidia.com/${name}`, String(value)]));
}

function migLabels(product: string, devices: MigDevices): Record<string, string | number> {
  const prefix = `mig-${devices.profile}`;
  return {
    [`${prefix}.count`]: devices.count,
    [`${prefix}.memory`]: devices.memory,
    [`${prefix}.product`]: `${product}-MIG-${devices.profile}`,
    [`${prefix}.multiprocessors`]: devices.multiprocessors,
    [`${prefix}.slices.gi`]: devices.slices,
    [`${prefix}.slices.ci`]: devices.slices,
    [`${prefix}.engines.copy`]: devices.copyEngines,
    [`${prefix}.engines.decoder`]: devices.decoders,
    [`${prefix}.engines.encoder`]: 0,
    [`${prefix}.engines.jpeg`]: 0,
    [`${prefix}.engines.ofa`]: 0,
    [`${prefix}.replicas`]: 1,
    [`${prefix}.sharing-strategy`]: 'none',
  };
}

/** What a node with these GPUs says. */
export function devicesOf(gpu: Gpu): Devices {
  return { labels: gpuLabels(gpu), resources: gpuResources(gpu) };
}

/** The extended resources that the device plugin advertises for these GPUs. */
export function gpuResources({ count, replicas = 1, mig = [] }: Gpu): Record<string, string> {
  const whole = mig.length > 0 ? 0 : count * replicas;
  const slices = mig.map(({ profile, count: devices }) => [`nvidia.com/mig-${profile}`, String(devices)] as const);
  return { 'nvidia.com/gpu': String(whole), ...Object.fromEntries(slices) };
}

/** The devices of each of these resources. A replica has its number behind the UUID, as NVIDIA's plugin writes it. */
export function gpuDevices({ count, replicas = 1, mig = [] }: Gpu): Record<string, string[]> {
  if (mig.length > 0) {
    const slices = mig.map(
      ({ profile, count: devices }) => [`nvidia.com/mig-${profile}`, uuids(`MIG`, devices)] as const,
    );
    return Object.fromEntries(slices);
  }
  const numbers = Array.from({ length: replicas }, (_, index) => index);
  const devices = uuids('GPU', count).flatMap((uuid) =>
    replicas === 1 ? [uuid] : numbers.map((number) => `${uuid}::${number}`),
  );
  return { 'nvidia.com/gpu': devices };
}

function uuids(kind: 'GPU' | 'MIG', count: number): string[] {
  return Array.from(
    { length: count },
    (_, index) => `${kind}-00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  );
}
