import {
  type GpuResource,
  type GpuSource,
  type Labels,
  type Maker,
  numberLabel,
  wholeGpus,
} from '../nodes/gpu-labels.ts';

/** By kernel driver. The plugin's resource `monitoring` opens all GPUs of a node and is none. */
const RESOURCES = ['gpu.intel.com/i915', 'gpu.intel.com/xe'];
const DEVICE = /^gpu\.intel\.com\/device-id\.[0-9a-f]{4}-([0-9a-f]{4})\.(count|present)$/;
const MIB = 2 ** 20;
const MILLICORES_PER_GPU = 1000;

/** How many GPUs the rules have found on PCI; 0 without them. They name the products for data centers alone. */
function gpusOf(labels: Labels): number {
  const ofProduct = numberLabel(labels, 'gpu.intel.com/device.count');
  if (ofProduct > 0) return ofProduct;
  const counts = Object.keys(labels).filter((name) => DEVICE.exec(name)?.[2] === 'count');
  return counts.reduce((sum, name) => sum + numberLabel(labels, name), 0);
}

function productOf(labels: Labels): string {
  const product = labels['gpu.intel.com/product'];
  if (product !== undefined && product !== '') return product;
  const ids = new Set(Object.keys(labels).flatMap((name) => DEVICE.exec(name)?.[1] ?? []));
  return ids.size === 1 ? `Intel_GPU_${[...ids].join('')}` : 'Intel_GPU';
}

// In bytes, of all GPUs together. Releases of the plugin write it only with resource management, and new ones not at all.
function memoryMb(labels: Labels): number {
  const gpus = numberLabel(labels, 'gpu.intel.com/millicores') / MILLICORES_PER_GPU || gpusOf(labels);
  return gpus === 0 ? 0 : Math.floor(numberLabel(labels, 'gpu.intel.com/memory.max') / gpus / MIB);
}

/** How many containers one GPU is given to: the plugin registers each GPU as often (its option shared-dev-num). */
function replicasOf({ labels, capacity }: GpuSource, total: number): number {
  const gpus = gpusOf(labels);
  const pieces = RESOURCES.reduce((sum, name) => sum + (capacity[name] ?? 0), 0);
  return gpus === 0 ? 1 : Math.max(1, Math.ceil(Math.max(pieces, total) / gpus));
}

function describe(source: GpuSource, resourceName: string, total: number): GpuResource {
  const { labels } = source;
  const whole = wholeGpus({ resourceName, product: productOf(labels), memoryMb: memoryMb(labels), total });
  const replicas = replicasOf(source, total);
  if (replicas === 1) return whole;
  return { ...whole, isolation: 'time_sliced', share: `1/${replicas}`, weight: 1 / replicas };
}

/**
 * Whole GPUs, and GPUs that the plugin shares. Follows intel/intel-device-plugins-for-kubernetes:
 * cmd/gpu_plugin/README.md for resources and sharing, cmd/gpu_plugin/labels.md and
 * deployments/nfd/overlays/node-feature-rules for the labels.
 */
export const INTEL: Maker = {
  resourceNames: RESOURCES,
  owns: (resourceName) => RESOURCES.includes(resourceName),
  describe,
  productOf,
  driverOf: () => ({ driverVersion: '', cudaVersion: '' }),
};
