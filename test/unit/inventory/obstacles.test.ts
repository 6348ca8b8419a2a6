import { expect, test } from 'vitest';
import { obstaclesOf } from '../../../src/inventory/nodes/obstacles.ts';
import type { Node } from '../../../src/kube/types.ts';
import type { GpuPoolSpec } from '../../../src/resources/gpu-pool.ts';
import { gpuNode, gpuPool, inventoryOf } from '../../support/inventory-world.ts';
import { randomFrom } from '../../support/random.ts';

const TAINTS = [
  { key: 'nvidia.com/gpu', effect: 'NoSchedule' },
  { key: 'team', value: 'ml', effect: 'NoSchedule' },
  { key: 'soft', effect: 'PreferNoSchedule' },
];

/** A node with whatever may be wrong with it, and a pool that may or may not take it. */
function drawn(random: () => number): { node: Node; spec: Partial<GpuPoolSpec> } {
  const oneIn = (count: number): boolean => Math.floor(random() * count) === 0;
  const node = gpuNode('n', {
    labels: { ...(!oneIn(4) && { zone: 'a' }), 'kubernetes.io/arch': oneIn(6) ? 'arm64' : 'amd64' },
    allocatable: {
      'nvidia.com/gpu': String(Math.floor(random() * 4)),
      ...(oneIn(4) && { 'nvidia.com/mig-1g.10gb': '7' }),
    },
    ready: !oneIn(5),
    cordoned: oneIn(5),
    taints: TAINTS.filter(() => oneIn(4)),
    userNamespaces: oneIn(2) ? { '': true } : { '': false },
  });
  const spec: Partial<GpuPoolSpec> = {
    nodeSelector: oneIn(2) ? {} : { zone: 'a' },
    sizes: oneIn(3) ? [2, 4] : [1],
    userNamespaces: oneIn(3) ? 'Required' : 'Preferred',
    ...(oneIn(2) && { tolerations: [{ key: 'team', operator: 'Exists' as const }] }),
  };
  const deletionTimestamp = oneIn(8) ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  return { node: { ...node, metadata: { ...node.metadata, ...deletionTimestamp } }, spec };
}

test('a node has an obstacle exactly when the offers have no free place on it while it is empty', () => {
  const random = randomFrom(7);
  const seen = new Map<string, number>();
  for (let round = 0; round < 2_000; round += 1) {
    const { node, spec } = drawn(random);
    const architectures = round % 2 === 0 ? new Set(['amd64']) : undefined;
    const { inventory } = inventoryOf({
      nodes: [node],
      pools: [gpuPool('p', spec)],
      ...(architectures && { architectures }),
    });
    const view = inventory.viewOf('n');
    if (view === undefined) throw new Error('the inventory does not know the node');
    const obstacles = obstaclesOf(node, view, architectures);
    const free = inventory.offers().reduce((sum, { available }) => sum + available, 0);
    expect({ round, obstacles, isFree: free > 0 }).toEqual({ round, obstacles, isFree: obstacles.length === 0 });
    for (const { reason } of obstacles.length === 0 ? [{ reason: 'none' }] : obstacles)
      seen.set(reason, (seen.get(reason) ?? 0) + 1);
    inventory.close();
  }
  const reasons = [
    'Architecture',
    'Cordoned',
    'Deleted',
    'NoGPUs',
    'NoPool',
    'NoSize',
    'NotReady',
    'Tainted',
    'UserNamespaces',
    'none',
  ];
  expect([...seen.keys()].toSorted()).toEqual(reasons.toSorted());
});

test("Berth's tools keep instances from nodes that cannot run them; simulated nodes run nothing", () => {
  const labels = { 'kubernetes.io/arch': 'arm64' };
  const nodes = [
    gpuNode('amd', { labels: { 'kubernetes.io/arch': 'amd64' } }),
    gpuNode('arm', { labels }),
    gpuNode('none'),
    gpuNode('simulated', { labels: { ...labels, 'berth.dev/simulated': 'true' } }),
  ];
  const closedWith = (architectures?: ReadonlySet<string>): string[] => {
    const { inventory } = inventoryOf({ nodes, pools: [gpuPool('p')], ...(architectures && { architectures }) });
    const closed = nodes.filter(({ metadata }) => inventory.viewOf(metadata.name)?.facts.isClosed === true);
    inventory.close();
    return closed.map(({ metadata }) => metadata.name);
  };
  expect(closedWith(new Set(['amd64']))).toEqual(['arm']);
  expect(closedWith(new Set(['amd64', 'arm64']))).toEqual([]);
  expect(closedWith()).toEqual([]);
});
