import { Inventory } from '../../inventory/inventory.ts';
import { gpuCounts } from '../../inventory/nodes/gpu-counts.ts';
import type { NodeView } from '../../inventory/nodes/node-view.ts';
import { type Obstacle, obstaclesOf } from '../../inventory/nodes/obstacles.ts';
import { orderPools } from '../../inventory/pools.ts';
import type { KubeObject, Node } from '../../kube/types.ts';
import { Cache } from '../../kube/watch/cache.ts';
import { looksLikeGpuNode } from '../gpu-node.ts';
import { byFault, check, firstOf, named, type Problem } from '../finding.ts';
import { describe } from '../obstacle-words.ts';

function cached<T extends KubeObject>(objects: readonly T[]): Cache<T> {
  const onListenerError = (error: unknown): never => {
    throw error;
  };
  const cache = new Cache<T>({ onListenerError });
  for (const object of objects) cache.upsert(object);
  return cache;
}

/** Kubernetes adds these taints to a node that is not ready, cordoned or unreachable, and takes them away itself. */
function isEcho(obstacle: Obstacle, all: readonly Obstacle[]): boolean {
  return (
    obstacle.reason === 'Tainted' &&
    obstacle.taint.key.startsWith('node.kubernetes.io/') &&
    all.some(({ reason }) => reason === 'NotReady' || reason === 'Cordoned')
  );
}

/** Nodes of no pool are not for rent, whatever else they lack. */
function tellable(all: readonly Obstacle[]): readonly Obstacle[] {
  const noPool = all.filter(({ reason }) => reason === 'NoPool');
  return noPool.length > 0 ? noPool : all.filter((obstacle) => !isEcho(obstacle, all));
}

function unhealthy(nodes: readonly Node[], viewOf: (node: string) => NodeView | undefined): Problem[] {
  const some = nodes.filter((node) => {
    const view = viewOf(node.metadata.name);
    const counts = view === undefined ? [] : gpuCounts(node, view, []);
    return counts.some((count) => count.unhealthy > 0 && count.unhealthy < count.total);
  });
  const names = some.map(({ metadata }) => metadata.name);
  if (names.length === 0) return [];
  return [
    {
      severity: 'warning',
      reason: 'UnhealthyGPUs',
      objects: names.map((name) => `node/${name}`),
      message: `Nodes ${named(names)}: the device plugin holds some GPUs for unhealthy.`,
      why: 'They are not offered. An instance that has one keeps it, unless its owner chose that it starts again.',
      remedy: `kubectl describe node ${firstOf(names).words}`,
    },
  ];
}

export const gpuNodes = check({
  name: 'gpu-nodes',
  title: 'Every node with GPUs is for rent',
  needs: ['nodes', 'pools', 'instances'],
  find({ nodes, pools, instances }, { now }) {
    const stores = {
      nodes: cached(nodes),
      pods: cached([]),
      pools: cached(pools),
      instances: cached(instances),
      storageClasses: cached([]),
    };
    const inventory = new Inventory(stores, { now: () => now });
    const ordered = orderPools(pools);
    const viewOf = (name: string): NodeView | undefined => inventory.viewOf(name);
    const found = nodes.flatMap((node) => {
      const view = viewOf(node.metadata.name);
      if (view === undefined) return [];
      if (!looksLikeGpuNode(node) && gpuCounts(node, view, []).length === 0) return [];
      const pool = view.facts.pool?.name;
      return tellable(obstaclesOf(node, view)).map(
        (obstacle) => [JSON.stringify({ obstacle, pool }), { obstacle, pool, name: node.metadata.name }] as const,
      );
    });
    inventory.close();
    const problems = [...byFault(found).values()].flatMap((group): Problem[] => {
      const [first] = group;
      if (first === undefined) return [];
      const names = group.map(({ name }) => name).toSorted();
      const pool = ordered.find(({ name }) => name === first.pool);
      const { reason } = first.obstacle;
      return [{ reason, objects: names.map((name) => `node/${name}`), ...describe(first.obstacle, names, pool) }];
    });
    return [...problems, ...unhealthy(nodes, viewOf)];
  },
});
