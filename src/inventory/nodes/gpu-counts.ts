import type { Claim } from '../../resources/instances/gpu-instance.ts';
import { lostOf } from '../devices/rivals.ts';
import type { GpuResource } from './gpu-labels.ts';
import type { NodeView } from './node-view.ts';

/** How many GPUs of one kind a node has, and what became of them. */
export interface GpuCount extends Pick<GpuResource, 'resourceName' | 'product' | 'memoryMb' | 'isolation'> {
  /** Healthy or not. */
  total: number;
  /** Those that the device plugin has taken out of service. */
  unhealthy: number;
  /** Those that claims hold. One that became unhealthy since counts here too. */
  rented: number;
  /** Those that pods without an instance have. */
  others: number;
  /** Those that nothing has, nor other parts of their GPUs. */
  free: number;
}

/** What a resource is whose every piece is out of service, so that the node has none for rent. */
function lostResource(product: string): Pick<GpuResource, 'product' | 'memoryMb' | 'isolation'> {
  return { product, memoryMb: 0, isolation: 'whole' };
}

/** The GPUs of a node that its pool rents out, by their resource. `claims` are those on this node. */
export function gpuCounts({ facts, used }: NodeView, claims: readonly Claim[]): GpuCount[] {
  const { labels, maker, capacity } = facts;
  const names = new Set([...facts.resources.map(({ resourceName }) => resourceName), ...Object.keys(capacity)]);
  return [...names]
    .filter((name) => maker.owns(name, labels))
    .flatMap((resourceName) => {
      const known = facts.resources.find((one) => one.resourceName === resourceName);
      const { product, memoryMb, isolation } = known ?? lostResource(maker.productOf(labels));
      const healthy = facts.allocatable[resourceName] ?? 0;
      const total = Math.max(healthy, capacity[resourceName] ?? 0);
      if (total === 0) return [];
      const rented = claims
        .filter((claim) => claim.resourceName === resourceName)
        .reduce((sum, { gpuCount }) => sum + gpuCount, 0);
      const taken = used[resourceName] ?? 0;
      const others = Math.max(0, taken - rented - lostOf(used, resourceName));
      const free = Math.max(0, healthy - taken);
      return [{ resourceName, product, memoryMb, isolation, total, unhealthy: total - healthy, rented, others, free }];
    });
}
