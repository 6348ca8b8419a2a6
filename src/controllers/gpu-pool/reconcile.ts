import { type Finding, setCondition } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import { freeOf, type NodeView } from '../../inventory/nodes/node-view.ts';
import { GPU_POOLS, type GpuPool, type GpuPoolStatus } from '../../resources/gpu-pool.ts';
import type { Result } from '../../runtime/controller.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { StatusRun } from '../status-run.ts';
import type { ControllerStores } from '../stores.ts';
import { patchStatus } from '../write-status.ts';

/** Counts may lag this much: a write per claim would double what a claim costs. */
const SETTLE_MS = 2_000;

/** Pools, and all of them some time after anything changed in the inventory. */
export function poolSources(
  stores: ControllerStores,
  { inventory, clock }: { inventory: Inventory; clock: Clock },
): Source[] {
  return [
    storeSource(stores.pools, (pool) => [keyOf(pool)]),
    {
      synced: Promise.resolve(),
      start(add) {
        let cancel: (() => void) | undefined;
        const stop = inventory.onChange(() => {
          cancel ??= clock.setTimeout(() => {
            cancel = undefined;
            for (const pool of stores.pools.values()) add(keyOf(pool));
          }, SETTLE_MS);
        });
        return () => {
          stop();
          cancel?.();
        };
      },
    },
  ];
}

interface Counts {
  nodes: number;
  gpus: number;
  free: number;
  offers: number;
}

export function countPool(views: Iterable<NodeView>): Omit<Counts, 'offers'> {
  const counts = { nodes: 0, gpus: 0, free: 0 };
  for (const view of views) {
    const { resources, closed } = view.facts;
    if (resources.length === 0) continue;
    counts.nodes += 1;
    for (const { resourceName, total } of resources) {
      counts.gpus += total;
      if (closed === undefined && !view.quarantined) counts.free += freeOf(view, resourceName);
    }
  }
  return counts;
}

export function poolStatus(pool: GpuPool, counts: Counts, now: number): GpuPoolStatus {
  const { generation } = pool.metadata;
  const finding: Finding =
    counts.nodes > 0
      ? { type: 'Ready', status: 'True', reason: 'HasNodes', message: 'The nodes of the pool are for rent.' }
      : {
          type: 'Ready',
          status: 'False',
          reason: 'NoNodes',
          message: 'No node with GPUs has the labels of spec.nodeSelector. Label a node, or change the selector.',
        };
  const conditions = setCondition(pool.status?.conditions, finding, { observedGeneration: generation, now });
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: conditions as NonNullable<GpuPoolStatus['conditions']>,
    ...counts,
  };
}

/** Keeps the counts of a pool in its status. */
export async function reconcilePool({ deps, key, context }: StatusRun): Promise<Result> {
  const { stores, inventory, clock, client } = deps;
  const pool = stores.pools.get(key);
  if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return undefined;
  const views: NodeView[] = [];
  for (const facts of inventory.nodes()) {
    const view = facts.pool?.name === key ? inventory.viewOf(facts.name) : undefined;
    if (view !== undefined) views.push(view);
  }
  const offers = inventory.offers().filter((offer) => offer.pool === key).length;
  const status = poolStatus(pool, { ...countPool(views), offers }, clock.now());
  await patchStatus(client, GPU_POOLS, pool, { status, signal: context.signal });
  return undefined;
}
