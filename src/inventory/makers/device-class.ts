import { DEVICE_RESOURCE, deviceLabels } from '../devices/told-node.ts';
import type { PoolDevices } from '../../resources/gpu-pool.ts';
import {
  type GpuResource,
  type Labels,
  type Maker,
  migSlices,
  numberLabel,
  sharedGpus,
  wholeGpus,
} from '../nodes/gpu-labels.ts';

/** The names that a driver gives to what Berth reads of its devices. */
interface DeviceNames {
  product: string;
  memory: string;
  driver: string;
  cuda?: string;
  /** The attribute `type` of whole GPUs; absent where a driver has only these. */
  whole?: string;
  /** The attribute `type` of MIG slices, whose attribute `profile` names their profile. */
  mig?: string;
  /** Resources by which a device plugin counts them, and taints of nodes with such GPUs. */
  taints: readonly string[];
}

/**
 * By driver: kubernetes-sigs/dra-driver-nvidia-gpu, ROCm/k8s-gpu-dra-driver (docs/driver-attributes.md) and
 * kubernetes-sigs/dra-example-driver.
 */
export const GPU_DRIVERS: Readonly<Record<string, DeviceNames>> = {
  'gpu.nvidia.com': {
    product: 'productName',
    memory: 'memory',
    driver: 'driverVersion',
    cuda: 'cudaDriverVersion',
    whole: 'gpu',
    mig: 'mig',
    taints: ['nvidia.com/gpu'],
  },
  'gpu.amd.com': {
    product: 'productName',
    memory: 'memory',
    driver: 'driverVersion',
    whole: 'amdgpu',
    taints: ['amd.com/gpu'],
  },
  'gpu.example.com': { product: 'model', memory: 'memory', driver: 'driverVersion', taints: [] },
};

/** A class must select only whole GPUs where a driver has other words for partitions. */
const OTHERS: DeviceNames = {
  product: 'productName',
  memory: 'memory',
  driver: 'driverVersion',
  mig: 'mig',
  taints: [],
};
const MIB = 2 ** 20;

type ClassDevices = Pick<PoolDevices, 'productAttribute' | 'memoryCapacity'> & { deviceClassName: string };

function namesOf(labels: Labels, resourceName: string, devices: ClassDevices): DeviceNames {
  const known = GPU_DRIVERS[labels[deviceLabels.driver(resourceName)] ?? ''] ?? OTHERS;
  const { productAttribute: product = known.product, memoryCapacity: memory = known.memory } = devices;
  return { ...known, product, memory };
}

/** GPUs that DeviceClasses select in ResourceSlices. Feature discovery writes a product with dashes. */
export function ofDeviceClass(devices: ClassDevices): Maker {
  const { deviceClassName } = devices;
  const attribute = (labels: Labels, resourceName: string, name = ''): string | undefined =>
    labels[deviceLabels.attribute(resourceName, name)];
  const productOf = (labels: Labels, resourceName = labels[DEVICE_RESOURCE] ?? ''): string =>
    attribute(labels, resourceName, namesOf(labels, resourceName, devices).product)?.replaceAll(' ', '-') ??
    labels[deviceLabels.className(resourceName)] ??
    deviceClassName;
  return {
    resourceNames: GPU_DRIVERS[deviceClassName]?.taints ?? [],
    owns: (resourceName, labels) => labels[deviceLabels.driver(resourceName)] !== undefined,
    describe({ labels, capacity }, resourceName, total): GpuResource | undefined {
      const { whole, mig, memory, taints } = namesOf(labels, resourceName, devices);
      // A device plugin counts the same GPUs by another name, and Kubernetes does not know that they are the same.
      const isCounted = (name: string): boolean => (capacity[name] ?? 0) > 0;
      if (taints.some((name) => labels[deviceLabels.driver(name)] === undefined && isCounted(name))) return undefined;
      const product = productOf(labels, resourceName);
      const memoryMb = Math.floor(numberLabel(labels, deviceLabels.capacity(resourceName, memory)) / MIB);
      const type = attribute(labels, resourceName, 'type');
      // Devices of one class that differ: nobody chooses which of them an instance gets.
      if (product === '') return undefined;
      const share = labels[deviceLabels.share(resourceName)];
      if (mig !== undefined && type === mig) {
        if (share !== undefined) return undefined;
        const profile = attribute(labels, resourceName, 'profile') ?? '';
        return migSlices(product, profile, { resourceName, memoryMb, total });
      }
      if (whole !== undefined && type !== whole) return undefined;
      const ofDevices = { resourceName, product, memoryMb, total };
      return share === undefined ? wholeGpus(ofDevices) : sharedGpus(ofDevices, share);
    },
    productOf: (labels) => productOf(labels),
    driverOf(labels) {
      const resourceName = labels[DEVICE_RESOURCE] ?? '';
      const { driver, cuda } = namesOf(labels, resourceName, devices);
      // An attribute has three numbers, and CUDA has two.
      const cudaVersion = attribute(labels, resourceName, cuda)?.replace(/^(\d+\.\d+)\.0$/, '$1') ?? '';
      return { driverVersion: attribute(labels, resourceName, driver) ?? '', cudaVersion };
    },
  };
}
