import { describe, expect, test } from 'vitest';
import { driverOf, type GpuResource, gpuResourcesOf } from '../../../src/inventory/nodes/gpu-labels.ts';
import { A100, gpuNode } from '../../support/inventory-world.ts';

interface Variant {
  name: string;
  labels: Record<string, string>;
  allocatable: Record<string, string>;
  want: Partial<GpuResource>[];
}

const GFD: Variant[] = [
  {
    name: 'whole GPUs',
    labels: {},
    allocatable: {},
    want: [{ resourceName: 'nvidia.com/gpu', product: A100, memoryMb: 81920, isolation: 'whole', total: 8 }],
  },
  {
    name: 'time-slicing marks the product',
    labels: { 'nvidia.com/gpu.product': 'Tesla-T4-SHARED', 'nvidia.com/gpu.replicas': '4' },
    allocatable: { 'nvidia.com/gpu': '32' },
    want: [{ resourceName: 'nvidia.com/gpu', product: 'Tesla-T4-SHARED', isolation: 'time_sliced', total: 32 }],
  },
  {
    name: 'time-slicing under another resource name keeps the product',
    labels: { 'nvidia.com/gpu.replicas': '4', 'nvidia.com/gpu.sharing-strategy': 'time-slicing' },
    allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/gpu.shared': '32' },
    want: [{ resourceName: 'nvidia.com/gpu.shared', product: A100, isolation: 'time_sliced', total: 32 }],
  },
  {
    name: 'MPS is sharing too',
    labels: { 'nvidia.com/gpu.sharing-strategy': 'mps', 'nvidia.com/gpu.replicas': '2' },
    allocatable: { 'nvidia.com/gpu': '16' },
    want: [{ resourceName: 'nvidia.com/gpu', isolation: 'time_sliced', total: 16 }],
  },
  {
    name: 'sharing-strategy none with one replica is whole',
    labels: { 'nvidia.com/gpu.sharing-strategy': 'none', 'nvidia.com/gpu.replicas': '1' },
    allocatable: {},
    want: [{ resourceName: 'nvidia.com/gpu', isolation: 'whole', total: 8 }],
  },
  {
    name: 'MIG single keeps the resource and names the slice in the product',
    labels: {
      'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb',
      'nvidia.com/gpu.memory': '4864',
      'nvidia.com/mig.strategy': 'single',
    },
    allocatable: { 'nvidia.com/gpu': '56' },
    want: [
      {
        resourceName: 'nvidia.com/gpu',
        product: 'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb',
        isolation: 'mig',
        migProfile: '1g.5gb',
        memoryMb: 4864,
        total: 56,
      },
    ],
  },
  {
    name: 'MIG mixed has a resource per profile beside the whole GPUs',
    labels: {
      'nvidia.com/mig.strategy': 'mixed',
      'nvidia.com/mig-1g.10gb.memory': '9856',
      'nvidia.com/mig-3g.40gb.memory': '40320',
      'nvidia.com/mig-3g.40gb.product': `${A100}-MIG-3g.40gb`,
    },
    allocatable: { 'nvidia.com/gpu': '4', 'nvidia.com/mig-1g.10gb': '7', 'nvidia.com/mig-3g.40gb': '2' },
    want: [
      { resourceName: 'nvidia.com/gpu', product: A100, isolation: 'whole', total: 4 },
      { resourceName: 'nvidia.com/mig-1g.10gb', product: `${A100}-MIG-1g.10gb`, memoryMb: 9856, isolation: 'mig' },
      { resourceName: 'nvidia.com/mig-3g.40gb', product: `${A100}-MIG-3g.40gb`, memoryMb: 40320, isolation: 'mig' },
    ],
  },
  {
    name: 'a shared MIG slice is not isolated',
    labels: { 'nvidia.com/mig-1g.10gb.replicas': '2' },
    allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb.shared': '14' },
    want: [{ resourceName: 'nvidia.com/mig-1g.10gb.shared', isolation: 'time_sliced', migProfile: '1g.10gb' }],
  },
  {
    name: 'resources that are no GPU are left out',
    labels: {},
    allocatable: { 'nvidia.com/gpu': '1', 'nvidia.com/ib': '8', 'rdma/hca': '1' },
    want: [{ resourceName: 'nvidia.com/gpu', total: 1 }],
  },
];

describe('GPUs of a node from its feature discovery labels', () => {
  test.each(GFD)('$name', ({ labels, allocatable, want }) => {
    const found = gpuResourcesOf(gpuNode('n', { labels, allocatable }));
    expect(found).toHaveLength(want.length);
    for (const [index, expected] of want.entries()) expect(found[index]).toMatchObject(expected);
  });

  test('the weights of slices and replicas are their part of a GPU', () => {
    const mixed = gpuNode('n', { allocatable: { 'nvidia.com/gpu': '1', 'nvidia.com/mig-3g.40gb': '2' } });
    const partsOf = (node: ReturnType<typeof gpuNode>) =>
      gpuResourcesOf(node).map(({ weight, share }) => [weight, share]);
    expect(partsOf(mixed)).toEqual([
      [1, '1'],
      [3 / 7, '3/7'],
    ]);
    const sliced = gpuNode('n', {
      labels: { 'nvidia.com/gpu.replicas': '4' },
      allocatable: { 'nvidia.com/gpu': '32' },
    });
    expect(partsOf(sliced)).toEqual([[0.25, '1/4']]);
  });

  test('driver and CUDA versions, also from the labels of older discoveries', () => {
    const now = { 'nvidia.com/cuda.driver-version.full': '570.86.10', 'nvidia.com/cuda.runtime-version.full': '12.8' };
    expect(driverOf(gpuNode('n', { labels: now }))).toEqual({ driverVersion: '570.86.10', cudaVersion: '12.8' });
    const old = {
      'nvidia.com/cuda.driver.major': '470',
      'nvidia.com/cuda.driver.minor': '57',
      'nvidia.com/cuda.driver.rev': '02',
      'nvidia.com/cuda.runtime.major': '11',
      'nvidia.com/cuda.runtime.minor': '4',
    };
    expect(driverOf(gpuNode('n', { labels: old }))).toEqual({ driverVersion: '470.57.02', cudaVersion: '11.4' });
  });
});
