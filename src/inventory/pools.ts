import { compareText } from '../lib/compare.ts';
import type { Node, StorageClass } from '../kube/types.ts';
import { type GpuPool, gpuPoolSpecSchema, type GpuPoolSpec } from '../resources/gpu-pool.ts';
import { shareOfMoney } from '../resources/money.ts';
import { groupsFor, NO_DEVICES, type NodeDevices, toldNode } from './devices/told-node.ts';
import { hasGpusOf, makerOf } from './makers/makers.ts';
import type { GpuResource } from './nodes/gpu-labels.ts';

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

export interface Pool {
  name: string;
  spec: GpuPoolSpec;
}

/** What a pool says of what it rents out. */
export type ListedPool = Pick<GpuPool, 'metadata' | 'spec'>;

function selects(pool: Pool, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(pool.spec.nodeSelector).every(([name, value]) => labels[name] === value);
}

/**
 * Pools with the most labels first, then by name. A node belongs to one of them: no GPU is offered twice. Where there is
 * no pool, nothing is for rent: its prices and its sandbox may be what somebody deleted, or what no cache has yet.
 */
export function orderPools(pools: Iterable<ListedPool>): Pool[] {
  return [...pools]
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec }) => ({ name: metadata.name, spec: gpuPoolSpecSchema.parse(spec) }))
    .toSorted(
      (a, b) =>
        Object.keys(b.spec.nodeSelector).length - Object.keys(a.spec.nodeSelector).length ||
        compareText(a.name, b.name),
    );
}

/**
 * The pool of a node, or undefined when the node is not for rent: the first that selects it and whose GPUs it has, or
 * else the first that selects it. `pools` as {@link orderPools} gives them.
 */
export function poolOf(node: Node, pools: readonly Pool[], devices: NodeDevices = NO_DEVICES): Pool | undefined {
  const labels = node.metadata.labels ?? {};
  const selecting = pools.filter((pool) => selects(pool, labels));
  if (selecting.length < 2) return selecting[0];
  const found = selecting.find(({ spec }) => {
    const told = toldNode(node, groupsFor(node, devices, spec.devices));
    return hasGpusOf(told, makerOf(spec.devices));
  });
  return found ?? selecting[0];
}

interface Price {
  onDemand: string;
  interruptible: string;
}

/**
 * Price of one piece per hour; 0 when the pool names none. The price of a product is that of one piece of it. The price
 * for every other product is that of a whole GPU, of which a slice costs its part.
 */
export function priceOf({ spec: { prices } }: Pool, { product, share }: Pick<GpuResource, 'product' | 'share'>): Price {
  const own = prices.find((price) => price.product === product);
  if (own !== undefined) return own;
  const { onDemand = '0', interruptible = '0' } = prices.find((price) => price.product === '*') ?? {};
  return { onDemand: shareOfMoney(onDemand, share), interruptible: shareOfMoney(interruptible, share) };
}

/** StorageClass of a pool's disks: the one it names, else the cluster's default; undefined without one. */
export function storageClassOf(
  pool: { disk: Pick<GpuPoolSpec['disk'], 'storageClassName'> },
  classes: Iterable<StorageClass>,
): string | undefined {
  const known = [...classes];
  const { storageClassName } = pool.disk;
  if (storageClassName !== undefined) {
    return known.some(({ metadata }) => metadata.name === storageClassName) ? storageClassName : undefined;
  }
  const defaults = known.filter(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true');
  // Of several defaults the newest counts, as in the API server's admission plugin.
  const newest = defaults.toSorted((a, b) =>
    String(b.metadata.creationTimestamp).localeCompare(String(a.metadata.creationTimestamp)),
  )[0];
  return newest?.metadata.name;
}
