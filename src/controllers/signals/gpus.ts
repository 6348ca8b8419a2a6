import { gpuCounts } from '../../inventory/nodes/gpu-counts.ts';
import { isOpen } from '../../inventory/nodes/node-view.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { Node } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';

const GPU_STATES = ['free', 'rented', 'others', 'unhealthy', 'closed'] as const;
type GpuState = (typeof GPU_STATES)[number];

export interface FleetSource {
  nodes: ReadStore<Node>;
  inventory: Pick<Inventory, 'viewOf' | 'claimsOn'>;
}

/** GPUs of one product on one node that the device plugin has taken out of service. */
export interface UnhealthyGPUs {
  node: string;
  product: string;
  count: number;
}

/** Those that are out of service, by node and product. Nodes whose GPUs are all healthy are left out. */
export function* unhealthyByNode({ nodes, inventory }: FleetSource): Iterable<UnhealthyGPUs> {
  for (const node of nodes.values()) {
    const { name } = node.metadata;
    const view = inventory.viewOf(name);
    if (view === undefined) continue;
    const counts = new Map<string, number>();
    for (const { product, unhealthy } of gpuCounts(node, view, [])) {
      if (unhealthy > 0) counts.set(product, (counts.get(product) ?? 0) + unhealthy);
    }
    for (const [product, count] of counts) yield { node: name, product, count };
  }
}

/** How many GPUs of each product are in each state. Those that nothing has are closed where nothing new is placed. */
export function gpusByProduct({ nodes, inventory }: FleetSource): Map<string, Record<GpuState, number>> {
  const products = new Map<string, Record<GpuState, number>>();
  for (const node of nodes.values()) {
    const { name } = node.metadata;
    const view = inventory.viewOf(name);
    if (view === undefined) continue;
    for (const { product, unhealthy, rented, others, free } of gpuCounts(node, view, inventory.claimsOn(name))) {
      const sums = products.get(product) ?? { free: 0, rented: 0, others: 0, unhealthy: 0, closed: 0 };
      sums.rented += rented;
      sums.others += others;
      sums.unhealthy += unhealthy;
      sums[isOpen(view) ? 'free' : 'closed'] += free;
      products.set(product, sums);
    }
  }
  return products;
}
