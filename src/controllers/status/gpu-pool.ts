import type { Inventory } from '../../inventory/inventory.ts';
import { freeOf } from '../../inventory/nodes/node-view.ts';
import { keyOf } from '../../kube/types.ts';
import { GPU_POOLS, type GpuPool } from '../../resources/gpu-pool.ts';
import type { Source } from '../../runtime/source.ts';
import type { CommonDeps } from '../common-deps.ts';
import { DelayedCall } from '../delayed-call.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';

/** The counts may be this old: a write for each claim would double the writes of a claim. */
const DELAY_MS = 2_000;

/** All pools, some time after a change of the inventory. */
function inventorySource({ stores, inventory, clock }: CommonDeps): Source {
  return {
    synced: Promise.resolve(),
    start(add) {
      const call = new DelayedCall(clock, DELAY_MS, () => {
        for (const pool of stores.pools.values()) add(keyOf(pool));
      });
      const stop = inventory.onChange(() => call.request());
      return () => {
        stop();
        call.cancel();
      };
    },
  };
}

function countPool(pool: string, inventory: Inventory): { nodes: number; gpus: number; free: number; offers: number } {
  const counts = { nodes: 0, gpus: 0, free: 0 };
  for (const facts of inventory.nodes()) {
    const view = facts.pool?.name === pool ? inventory.viewOf(facts.name) : undefined;
    if (view === undefined || facts.resources.length === 0) continue;
    counts.nodes += 1;
    for (const { resourceName, total } of facts.resources) {
      counts.gpus += total;
      if (!facts.isClosed && !view.quarantined) counts.free += freeOf(view, resourceName);
    }
  }
  return { ...counts, offers: inventory.offers().filter((offer) => offer.pool === pool).length };
}

const HAS_NODES = { status: 'True', reason: 'HasNodes', message: 'The nodes of the pool are for rent.' } as const;
const NO_NODES = {
  status: 'False',
  reason: 'NoNodes',
  message: 'No node with GPUs has the labels of spec.nodeSelector. Label a node, or change the selector.',
} as const;

/** Shows what a pool has. */
export function poolStatus(deps: CommonDeps): StatusKind<GpuPool> {
  return {
    name: 'gpupool',
    type: GPU_POOLS,
    store: deps.stores.pools,
    sources: [inventorySource(deps)],
    statusOf(pool, now) {
      const counts = countPool(pool.metadata.name, deps.inventory);
      return { ...readyStatus(pool, counts.nodes > 0 ? HAS_NODES : NO_NODES, now), ...counts };
    },
  };
}
