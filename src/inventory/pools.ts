import { compareText } from '../lib/compare.ts';
import type { Node } from '../kube/types.ts';
import { type GpuPool, gpuPoolSpecSchema, type GpuPoolSpec } from '../resources/gpu-pool.ts';

export interface Pool {
  name: string;
  spec: GpuPoolSpec;
}

/** While there is no GPUPool, every GPU node is in this pool and costs nothing. */
const DEFAULT_POOL: Pool = { name: 'default', spec: gpuPoolSpecSchema.parse({}) };

function selects(pool: Pool, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(pool.spec.nodeSelector).every(([name, value]) => labels[name] === value);
}

/** Pools with the most labels first, then by name. A node belongs to the first match: no GPU is offered twice. */
export function orderPools(pools: Iterable<GpuPool>): Pool[] {
  const ordered = [...pools]
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec }) => ({ name: metadata.name, spec: gpuPoolSpecSchema.parse(spec) }))
    .toSorted(
      (a, b) =>
        Object.keys(b.spec.nodeSelector).length - Object.keys(a.spec.nodeSelector).length ||
        compareText(a.name, b.name),
    );
  return ordered.length === 0 ? [DEFAULT_POOL] : ordered;
}

/** The pool of a node, or undefined when the node is not for rent. `pools` as {@link orderPools} gives them. */
export function poolOf(node: Node, pools: readonly Pool[]): Pool | undefined {
  const labels = node.metadata.labels ?? {};
  return pools.find((pool) => selects(pool, labels));
}

/** Price of one piece per hour; 0 when the pool names none. */
export function priceOf(pool: Pool, product: string): { onDemand: string; interruptible: string } {
  const { prices } = pool.spec;
  return (
    prices.find((price) => price.product === product) ??
    prices.find((price) => price.product === '*') ?? { onDemand: '0', interruptible: '0' }
  );
}
