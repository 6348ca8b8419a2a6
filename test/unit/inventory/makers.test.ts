import { describe, expect, test } from 'vitest';
import { makerOf, makerOfResource } from '../../../src/inventory/makers/makers.ts';
import { driverOf, type GpuResource, gpuResourcesOf } from '../../../src/inventory/nodes/gpu-labels.ts';
import type { PoolDevices } from '../../../src/resources/gpu-pool.ts';
import { deviceNode } from '../../support/inventory-world.ts';

interface Variant {
  name: string;
  devices: PoolDevices;
  labels: Record<string, string>;
  allocatable: Record<string, string>;
  capacity?: Record<string, string>;
  want: Partial<GpuResource>[];
}

// Labels of the node labeller's own example for an MI300X (instinct.docs.amd.com, k8s-device-plugin).
const MI300X = {
  'amd.com/gpu.cu-count': '304',
  'amd.com/gpu.device-id': '74a1',
  'amd.com/gpu.family': 'AI',
  'amd.com/gpu.product-name': 'AMD_Instinct_MI300X_OAM',
  'amd.com/gpu.simd-count': '1216',
  'amd.com/gpu.vram': '192G',
};
// Of a virtual function in a public cloud, where the labeller finds no product (ROCm/k8s-device-plugin#112).
const MI300X_VF = {
  'amd.com/gpu.cu-count': '304',
  'amd.com/gpu.device-id': '74b5',
  'amd.com/gpu.driver-version': '6.8.5',
  'amd.com/gpu.family': 'AI',
  'amd.com/gpu.vram': '191G',
  'beta.amd.com/gpu.device-id': '74b5',
  'beta.amd.com/gpu.device-id.74b5': '8',
  'beta.amd.com/gpu.vram': '191G',
  'beta.amd.com/gpu.vram.191G': '8',
};
// From cmd/k8s-node-labeller/README.md.
const MI25 = {
  'beta.amd.com/gpu.cu-count.64': '1',
  'beta.amd.com/gpu.device-id.6860': '1',
  'beta.amd.com/gpu.family.AI': '1',
  'beta.amd.com/gpu.vram.16G': '1',
};
// From cmd/gpu_plugin/labels.md, with what the generic rules write beside it.
const MAX_1550 = {
  'gpu.intel.com/device-id.0380-0bd5.count': '2',
  'gpu.intel.com/device-id.0380-0bd5.present': 'true',
  'gpu.intel.com/device.count': '2',
  'gpu.intel.com/family': 'Max_Series',
  'gpu.intel.com/product': 'Max_1550',
};
const TIGER_LAKE = {
  'gpu.intel.com/device-id.0300-9a49.count': '1',
  'gpu.intel.com/device-id.0300-9a49.present': 'true',
};

const VARIANTS: Variant[] = [
  {
    name: 'AMD with all labels',
    devices: { preset: 'AMD' },
    labels: MI300X,
    allocatable: { 'amd.com/gpu': '8' },
    want: [
      {
        resourceName: 'amd.com/gpu',
        product: 'AMD_Instinct_MI300X_OAM',
        memoryMb: 192 * 1024,
        isolation: 'whole',
        total: 8,
        share: '1',
        migProfile: undefined,
      },
    ],
  },
  {
    name: 'AMD without a product has its PCI id',
    devices: { preset: 'AMD' },
    labels: MI300X_VF,
    allocatable: { 'amd.com/gpu': '8' },
    want: [{ product: 'AMD_GPU_74b5', memoryMb: 191 * 1024 }],
  },
  {
    name: 'AMD with the labels of old labellers',
    devices: { preset: 'AMD' },
    labels: MI25,
    allocatable: { 'amd.com/gpu': '1' },
    want: [{ product: 'AMD_GPU_6860', memoryMb: 16 * 1024 }],
  },
  {
    name: 'AMD of two kinds on one node says neither product nor memory',
    devices: { preset: 'AMD' },
    labels: {
      'beta.amd.com/gpu.device-id.6860': '1',
      'beta.amd.com/gpu.device-id.7300': '1',
      'amd.com/gpu.vram.16G': '1',
      'amd.com/gpu.vram.4G': '1',
    },
    allocatable: { 'amd.com/gpu': '2' },
    want: [{ product: 'AMD_GPU', memoryMb: 0, total: 2 }],
  },
  {
    name: 'AMD without labels',
    devices: { preset: 'AMD' },
    labels: {},
    allocatable: { 'amd.com/gpu': '2' },
    want: [{ product: 'AMD_GPU', memoryMb: 0 }],
  },
  {
    name: 'AMD by partition: whole GPUs are for rent, parts of them are not',
    devices: { preset: 'AMD' },
    labels: MI300X,
    allocatable: { 'amd.com/spx_nps1': '5', 'amd.com/cpx_nps4': '12', 'amd.com/dpx_nps2': '2' },
    want: [{ resourceName: 'amd.com/spx_nps1', product: 'AMD_Instinct_MI300X_OAM', isolation: 'whole', total: 5 }],
  },
  {
    name: 'AMD with partitions under the name of GPUs has nothing for rent',
    devices: { preset: 'AMD' },
    labels: { ...MI300X, 'amd.com/gpu.compute-memory-partition': 'cpx_nps4' },
    allocatable: { 'amd.com/gpu': '64' },
    want: [],
  },
  {
    name: 'AMD whose partition is the whole GPU',
    devices: { preset: 'AMD' },
    labels: { ...MI300X, 'amd.com/gpu.compute-memory-partition': 'spx_nps1' },
    allocatable: { 'amd.com/gpu': '8' },
    want: [{ total: 8, isolation: 'whole' }],
  },
  {
    name: 'Intel for data centers, whose memory no label tells',
    devices: { preset: 'Intel' },
    labels: MAX_1550,
    allocatable: { 'gpu.intel.com/i915': '2' },
    want: [{ resourceName: 'gpu.intel.com/i915', product: 'Max_1550', memoryMb: 0, isolation: 'whole', total: 2 }],
  },
  {
    name: 'Intel with the memory of all GPUs in one label',
    devices: { preset: 'Intel' },
    labels: { ...MAX_1550, 'gpu.intel.com/millicores': '2000', 'gpu.intel.com/memory.max': String(2 * 128 * 2 ** 30) },
    allocatable: { 'gpu.intel.com/xe': '2' },
    want: [{ resourceName: 'gpu.intel.com/xe', memoryMb: 128 * 1024 }],
  },
  {
    name: 'Intel without a product has its PCI id',
    devices: { preset: 'Intel' },
    labels: TIGER_LAKE,
    allocatable: { 'gpu.intel.com/i915': '1' },
    want: [{ product: 'Intel_GPU_9a49', isolation: 'whole' }],
  },
  {
    name: 'Intel: the resource that opens all GPUs of a node is not for rent',
    devices: { preset: 'Intel' },
    labels: MAX_1550,
    allocatable: { 'gpu.intel.com/i915': '2', 'gpu.intel.com/monitoring': '1', 'gpu.intel.com/i915_monitoring': '1' },
    want: [{ resourceName: 'gpu.intel.com/i915' }],
  },
  {
    name: 'Intel that its plugin gives to four containers each',
    devices: { preset: 'Intel' },
    labels: MAX_1550,
    allocatable: { 'gpu.intel.com/i915': '8' },
    want: [{ isolation: 'time_sliced', total: 8, share: '1/4', weight: 0.25 }],
  },
  {
    name: 'Intel that is shared stays so while most of it is out of service',
    devices: { preset: 'Intel' },
    labels: MAX_1550,
    allocatable: { 'gpu.intel.com/i915': '1' },
    capacity: { 'gpu.intel.com/i915': '8' },
    want: [{ isolation: 'time_sliced', total: 1 }],
  },
  {
    name: 'Intel by two kernel drivers',
    devices: { preset: 'Intel' },
    labels: { ...MAX_1550, 'gpu.intel.com/device.count': '4' },
    allocatable: { 'gpu.intel.com/i915': '2', 'gpu.intel.com/xe': '2' },
    want: [
      { resourceName: 'gpu.intel.com/i915', isolation: 'whole' },
      { resourceName: 'gpu.intel.com/xe', isolation: 'whole' },
    ],
  },
  {
    name: 'a resource that the pool names, without labels',
    devices: { resourceName: 'habana.ai/gaudi' },
    labels: {},
    allocatable: { 'habana.ai/gaudi': '8', 'habana.ai/other': '8' },
    want: [{ resourceName: 'habana.ai/gaudi', product: 'gaudi', memoryMb: 0, isolation: 'whole', total: 8 }],
  },
  {
    name: 'a resource that the pool names, with labels',
    devices: {
      resourceName: 'habana.ai/gaudi',
      productLabel: 'example.com/gpu',
      memoryLabel: 'example.com/memory',
      memoryUnit: 'GiB',
    },
    labels: { 'example.com/gpu': 'Gaudi-3', 'example.com/memory': '128' },
    allocatable: { 'habana.ai/gaudi': '8' },
    want: [{ product: 'Gaudi-3', memoryMb: 128 * 1024 }],
  },
  {
    name: 'labels that the pool names win over those of the preset, where they stand on the node',
    devices: { preset: 'Intel', productLabel: 'example.com/gpu', memoryLabel: 'example.com/memory' },
    labels: { ...MAX_1550, 'example.com/memory': '131072' },
    allocatable: { 'gpu.intel.com/i915': '2' },
    want: [{ product: 'Max_1550', memoryMb: 131_072 }],
  },
  {
    name: 'memory in bytes, and a label that is no number',
    devices: { preset: 'AMD', memoryLabel: 'example.com/memory', memoryUnit: 'Bytes' },
    labels: { ...MI300X, 'example.com/memory': '192G' },
    allocatable: { 'amd.com/gpu': '8' },
    want: [{ memoryMb: 192 * 1024 }],
  },
  {
    name: 'NVIDIA by name, without GPU Feature Discovery',
    devices: { preset: 'NVIDIA', productLabel: 'cloud.google.com/gke-accelerator' },
    labels: { 'cloud.google.com/gke-accelerator': 'nvidia-l4' },
    allocatable: { 'nvidia.com/gpu': '2', 'nvidia.com/mig-1g.10gb': '1' },
    want: [
      { resourceName: 'nvidia.com/gpu', product: 'nvidia-l4' },
      { resourceName: 'nvidia.com/mig-1g.10gb', product: 'GPU-MIG-1g.10gb' },
    ],
  },
];

describe('GPUs of a node for a pool that says whose they are', () => {
  test.each(VARIANTS)('$name', ({ devices, labels, allocatable, capacity = allocatable, want }) => {
    const found = gpuResourcesOf(deviceNode('n', labels, { allocatable, capacity }), makerOf(devices));
    expect(found).toHaveLength(want.length);
    for (const [index, expected] of want.entries()) expect(found[index]).toMatchObject(expected);
  });

  test.each([
    ['amd.com/gpu', '6.8.5'],
    ['nvidia.com/gpu', '570.86.10'],
    ['gpu.intel.com/i915', ''],
    ['habana.ai/gaudi', ''],
  ])('the driver of %s is %j, whatever else the node has', (resourceName, driverVersion) => {
    const labels = { ...MI300X_VF, ...MAX_1550, 'nvidia.com/cuda.driver-version.full': '570.86.10' };
    const node = deviceNode('n', labels, { allocatable: {} });
    expect(driverOf(node, makerOfResource(resourceName)).driverVersion).toBe(driverVersion);
  });
});
