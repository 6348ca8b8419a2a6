import { keyOf } from '../../kube/types.ts';
import { freeOf, type NodeView } from '../../inventory/nodes/node-view.ts';
import { GPU_POOLS, type GpuPoolStatus } from '../../resources/gpu-pool.ts';
import type { Result } from '../../runtime/controller.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { DelayedCall } from '../delayed-call.ts';
import type { StatusRun } from '../common-deps.ts';
import type { ControllerStores } from '../stores.ts';
import { patchStatus, readyStatus } from '../write-status.ts';

/** The counts may be this old: a write for each claim would double the writes of a claim. */
const STATUS_DELAY_MS = 2_000;

/** Changes of pools, and all pools some time after a change of the inventory. */
export function poolSources(
  stores: ControllerStores,
  { inventory, clock }: { inventory: Inventory; clock: Clock },
): Source[] {
  return [
    storeSource(stores.pools, (pool) => [keyOf(pool)]),
    {
      synced: Promise.resolve(),
      start(add) {
        const call = new DelayedCall(clock, STATUS_DELAY_MS, () => {
          for (const pool of stores.pools.values()) add(keyOf(pool));
        });
        const stop = inventory.onChange(() => call.request());
        return () => {
          stop();
          call.cancel();
        };
      },
    },
  ];
}

function countPool(views: Iterable<NodeView>): { nodes: number; gpus: number; free: number } {
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

const HAS_NODES = { status: 'True', reason: 'HasNodes', message: 'The nodes of the pool are for rent.' } as const;
const NO_NODES = {
  status: 'False',
  reason: 'NoNodes',
  message: 'No node with GPUs has the labels of spec.nodeSelector. Label a node, or change the selector.',
} as const;

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
  const counts = countPool(views);
  const ready = readyStatus(pool, counts.nodes > 0 ? HAS_NODES : NO_NODES, clock.now());
  const status = { ...ready, ...counts, offers } satisfies GpuPoolStatus;
  await patchStatus(client, GPU_POOLS, pool, { status, signal: context.signal });
  return undefined;
}
