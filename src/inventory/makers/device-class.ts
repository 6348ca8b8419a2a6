import { DEVICE_ATTRIBUTE, DEVICE_CAPACITY, DEVICE_DRIVER, DEVICE_RESOURCE } from '../devices/told-node.ts';
import type { PoolDevices } from '../../resources/gpu-pool.ts';
import { type GpuResource, type Labels, type Maker, numberLabel, wholeGpus } from '../nodes/gpu-labels.ts';

/** The names that a driver gives to what Berth reads of its devices. */
interface DeviceNames {
  product: string;
  memory: string;
  driver: string;
  cuda?: string;
  /** The attribute `type` of whole GPUs; absent where a driver has only these. */
  whole?: string;
  /** Taints of nodes with such GPUs. */
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

const OTHERS: DeviceNames = { product: 'productName', memory: 'memory', driver: 'driverVersion', taints: [] };
const MIB = 2 ** 20;

type ClassDevices = Pick<PoolDevices, 'productAttribute' | 'memoryCapacity'> & { deviceClassName: string };

function namesOf(labels: Labels, devices: ClassDevices): DeviceNames {
  const known = GPU_DRIVERS[labels[DEVICE_DRIVER] ?? ''] ?? OTHERS;
  const { productAttribute: product = known.product, memoryCapacity: memory = known.memory } = devices;
  return { ...known, product, memory };
}

/** GPUs that a DeviceClass selects in ResourceSlices. Feature discovery writes a product with dashes. */
export function ofDeviceClass(devices: ClassDevices): Maker {
  const { deviceClassName } = devices;
  const attribute = (labels: Labels, name = ''): string | undefined => labels[DEVICE_ATTRIBUTE + name];
  const productOf = (labels: Labels): string =>
    attribute(labels, namesOf(labels, devices).product)?.replaceAll(' ', '-') ?? deviceClassName;
  return {
    resourceNames: GPU_DRIVERS[deviceClassName]?.taints ?? [],
    owns: (resourceName, labels) => labels[DEVICE_RESOURCE] === resourceName,
    describe({ labels }, resourceName, total): GpuResource | undefined {
      const { whole, memory } = namesOf(labels, devices);
      const product = productOf(labels);
      // Devices of one class that differ: nobody chooses which of them an instance gets.
      if (product === '' || (whole !== undefined && attribute(labels, 'type') !== whole)) return undefined;
      const memoryMb = Math.floor(numberLabel(labels, DEVICE_CAPACITY + memory) / MIB);
      return wholeGpus({ resourceName, product, memoryMb, total });
    },
    productOf,
    driverOf(labels) {
      const { driver, cuda } = namesOf(labels, devices);
      // An attribute has three numbers, and CUDA has two.
      const cudaVersion = attribute(labels, cuda)?.replace(/^(\d+\.\d+)\.0$/, '$1') ?? '';
      return { driverVersion: attribute(labels, driver) ?? '', cudaVersion };
    },
  };
}
