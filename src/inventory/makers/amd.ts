import { type GpuResource, type GpuSource, type Labels, type Maker, wholeGpus } from '../nodes/gpu-labels.ts';

const WHOLE = 'amd.com/gpu';
/** The same where the device plugin names resources by their partition: one compute partition, one memory domain. */
const WHOLE_BY_PARTITION = 'amd.com/spx_nps1';
const MIB_PER_GIB = 1024;

/**
 * A property of GPUs that are all alike: `amd.com/gpu.NAME=VALUE`, or the older `beta.amd.com/gpu.NAME=VALUE` and
 * `beta.amd.com/gpu.NAME.VALUE=COUNT`. Undefined where GPUs differ.
 */
function property(labels: Labels, name: string): string | undefined {
  const value = labels[`amd.com/gpu.${name}`] ?? labels[`beta.amd.com/gpu.${name}`];
  if (value !== undefined && value !== '') return value;
  const prefix = `beta.amd.com/gpu.${name}.`;
  const values = Object.keys(labels).filter((key) => key.startsWith(prefix));
  return values.length === 1 ? values[0]?.slice(prefix.length) : undefined;
}

/** The name of the product, or the PCI id where the labeller cannot read the name, as of some virtual functions. */
function productOf(labels: Labels): string {
  const name = property(labels, 'product-name');
  if (name !== undefined) return name;
  const id = property(labels, 'device-id');
  return id === undefined ? 'AMD_GPU' : `AMD_GPU_${id}`;
}

// The labeller rounds to whole GiB and writes G.
function memoryMb(labels: Labels): number {
  const [, gib] = /^(\d{1,6})G$/.exec(property(labels, 'vram') ?? '') ?? [];
  return Number(gib ?? 0) * MIB_PER_GIB;
}

/** Whether the GPUs are divided: then amd.com/gpu counts partitions, of which some share their memory. */
function isPartitioned(labels: Labels): boolean {
  const partition = property(labels, 'compute-memory-partition');
  return partition !== undefined && !partition.toLowerCase().startsWith('spx');
}

function owns(resourceName: string, labels: Labels): boolean {
  return resourceName === WHOLE_BY_PARTITION || (resourceName === WHOLE && !isPartitioned(labels));
}

function describe({ labels }: GpuSource, resourceName: string, total: number): GpuResource {
  return wholeGpus({ resourceName, product: productOf(labels), memoryMb: memoryMb(labels), total });
}

/**
 * Whole GPUs, and no partitions. Follows ROCm/k8s-device-plugin: cmd/k8s-node-labeller/main.go for the labels,
 * docs/user-guide/configuration.md for the names of resources.
 */
export const AMD: Maker = {
  resourceNames: [WHOLE, WHOLE_BY_PARTITION],
  owns,
  describe,
  productOf,
  driverOf: (labels) => ({ driverVersion: labels['amd.com/gpu.driver-version'] ?? '', cudaVersion: '' }),
};
