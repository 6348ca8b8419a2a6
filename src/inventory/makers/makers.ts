import type { Node } from '../../kube/types.ts';
import type { GpuPoolSpec, PoolDevices } from '../../resources/gpu-pool.ts';
import { type GpuResource, type Labels, type Maker, numberLabel, NVIDIA, wholeGpus } from '../nodes/gpu-labels.ts';
import { AMD } from './amd.ts';
import { ofDeviceClass } from './device-class.ts';
import { INTEL } from './intel.ts';

const PRESETS: Readonly<Record<NonNullable<PoolDevices['preset']>, Maker>> = { NVIDIA, AMD, Intel: INTEL };
const MIB_PER: Readonly<Record<NonNullable<PoolDevices['memoryUnit']>, number>> = {
  Bytes: 2 ** -20,
  MiB: 1,
  GiB: 1024,
};

/** GPUs of which only the resource is known. */
function named(resourceName: string): Maker {
  const product = resourceName.slice(resourceName.indexOf('/') + 1);
  return {
    resourceNames: [resourceName],
    owns: (name) => name === resourceName,
    describe: (_source, name, total) => wholeGpus({ resourceName: name, product, memoryMb: 0, total }),
    productOf: () => product,
    driverOf: () => ({ driverVersion: '', cudaVersion: '' }),
  };
}

/** The same GPUs, told by the labels that a pool names. */
function relabelled(maker: Maker, { productLabel = '', memoryLabel = '', memoryUnit = 'MiB' }: PoolDevices): Maker {
  const productOf = (labels: Labels): string => labels[productLabel] || maker.productOf(labels);
  const memoryOf = (labels: Labels): number => Math.floor(numberLabel(labels, memoryLabel) * MIB_PER[memoryUnit]);
  return {
    ...maker,
    productOf,
    describe(source, resourceName, total): GpuResource | undefined {
      const found = maker.describe(source, resourceName, total);
      if (found === undefined || found.migProfile !== undefined) return found;
      const { labels } = source;
      return { ...found, product: labels[productLabel] || found.product, memoryMb: memoryOf(labels) || found.memoryMb };
    },
  };
}

/** Whose GPUs a pool rents out. */
export function makerOf(devices: PoolDevices | undefined): Maker {
  if (devices === undefined) return NVIDIA;
  const { preset = 'NVIDIA', resourceName, deviceClassName } = devices;
  if (deviceClassName !== undefined) return ofDeviceClass({ ...devices, deviceClassName });
  const maker = resourceName === undefined ? PRESETS[preset] : named(resourceName);
  return devices.productLabel === undefined && devices.memoryLabel === undefined ? maker : relabelled(maker, devices);
}

/** Whether a node has GPUs of a maker, also while all of them are out of service. */
export function hasGpusOf({ metadata: { labels = {} }, status }: Node, maker: Maker): boolean {
  const names = [...Object.keys(status?.capacity ?? {}), ...Object.keys(status?.allocatable ?? {})];
  return names.some((name) => maker.owns(name, labels));
}

/** Whose GPUs count on a node: those of its pool, and of a node in no pool the first that it has. */
export function makerOn(node: Node, pool: Pick<GpuPoolSpec, 'devices'> | undefined): Maker {
  if (pool !== undefined) return makerOf(pool.devices);
  return Object.values(PRESETS).find((maker) => hasGpusOf(node, maker)) ?? NVIDIA;
}

/** The maker of a resource, by its name alone. */
export function makerOfResource(resourceName: string): Maker {
  return Object.values(PRESETS).find(({ owns }) => owns(resourceName, {})) ?? named(resourceName);
}
