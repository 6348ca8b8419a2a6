import { describe, expect, test } from 'vitest';
import type { Node } from '../../../src/kube/types.ts';
import type { Claim } from '../../../src/resources/instances/gpu-instance.ts';
import { claimOn, gpuInstance, gpuNode, gpuPool, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

const SLICE = 'nvidia.com/mig-1g.10gb';
const WHOLE = 'nvidia.com/gpu';
const NONE = { [WHOLE]: '0' };
const T4 = { 'nvidia.com/gpu.product': 'Tesla-T4', 'nvidia.com/gpu.memory': '15360' };
const SHARED = { 'nvidia.com/gpu.product': 'Tesla-T4-SHARED', 'nvidia.com/gpu.memory': '15360' };

function node(devices: Record<string, string>, labels: Record<string, string> = T4, capacity = devices): Node {
  const made = gpuNode('n', { labels, allocatable: { ...NONE, ...devices } });
  return { ...made, status: { ...made.status, capacity: { ...NONE, ...capacity } } };
}

const slice = { resourceName: SLICE, isolation: 'mig', migProfile: '1g.10gb', gpuShare: '1/7' } as const;
const replica = { isolation: 'time_sliced', gpuShare: '1/4' } as const;
const whole = { product: 'Tesla-T4' };

/** How many places a node has beside an instance, and how many it has when that has ended. */
function places(on: Node, ...claims: Partial<Claim>[]): [beside: number, after: number] {
  const instances = claims.map((claim, index) => {
    const status = { claim: claimOn('n', { gpuCount: 1, ...claim }), incarnation: 1, diskPersistent: true };
    return gpuInstance(`i${index}`, {}, status);
  });
  const pools = [gpuPool('p', { sizes: [1] })];
  const { inventory, caches } = inventoryOf({ nodes: [on], instances, pools });
  const sum = (): number => inventory.offers().reduce((total, { available }) => total + available, 0);
  const beside = sum();
  expect('place' in inventory.grant(placeRequest())).toBe(beside > 0);
  for (const one of instances)
    caches.instances.remove({ ...one, metadata: { ...one.metadata, resourceVersion: '200' } });
  return [beside, sum()];
}

describe('nothing is offered beside a program whose GPUs were switched under it, until it has ended', () => {
  test.each<[string, Node, Partial<Claim>[], number]>([
    ['a slice, then whole GPUs', node({ [WHOLE]: '2' }), [slice], 2],
    [
      'a slice, then whole GPUs beside the old resource',
      node({ [WHOLE]: '2' }, T4, { [WHOLE]: '2', [SLICE]: '14' }),
      [slice],
      2,
    ],
    ['a whole GPU, then slices', node({ [SLICE]: '14' }), [whole], 14],
    ['a whole GPU, then replicas', node({ [WHOLE]: '8' }, { ...SHARED, 'nvidia.com/gpu.replicas': '4' }), [whole], 8],
    ['a replica, then whole GPUs', node({ [WHOLE]: '2' }), [replica], 2],
    [
      'a replica of four, then of two',
      node({ [WHOLE]: '4' }, { ...SHARED, 'nvidia.com/gpu.replicas': '2' }),
      [replica],
      4,
    ],
    [
      'a slice, then larger ones under the same resource',
      node({ [WHOLE]: '6' }, { 'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-80GB-MIG-2g.20gb' }),
      [{ ...slice, resourceName: WHOLE }],
      6,
    ],
    [
      'slices of one kind, then fewer of them beside others',
      node({ [SLICE]: '1', 'nvidia.com/mig-3g.40gb': '2' }),
      [slice, slice],
      3,
    ],
  ])('%s', (_what, on, claims, after) => {
    expect(places(on, ...claims)).toEqual([0, after]);
  });
});

describe('all else is offered as ever', () => {
  test.each<[string, Node, Partial<Claim>[], number]>([
    ['beside a program whose GPUs are as they were', node({ [WHOLE]: '2' }), [whole], 1],
    ['beside a slice', node({ [SLICE]: '7', 'nvidia.com/mig-3g.40gb': '2' }), [slice], 8],
    ['beside a replica', node({ [WHOLE]: '8' }, { ...SHARED, 'nvidia.com/gpu.replicas': '4' }), [replica], 7],
    ['beside a program whose product has another name since', node({ [WHOLE]: '2' }), [{ product: 'T4' }], 1],
    [
      'beside a slice of a version that did not say what part it is',
      node({ [SLICE]: '7' }),
      [{ ...slice, gpuShare: undefined }],
      6,
    ],
    [
      'beside slices of which one is unhealthy',
      node({ [SLICE]: '1', 'nvidia.com/mig-3g.40gb': '2' }, T4, { [SLICE]: '2', 'nvidia.com/mig-3g.40gb': '2' }),
      [slice, slice],
      2,
    ],
  ])('%s', (_what, on, claims, beside) => {
    expect(places(on, ...claims)[0]).toBe(beside);
  });
});
