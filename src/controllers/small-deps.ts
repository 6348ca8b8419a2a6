import type { KubeClient } from '../kube/client/client.ts';
import type { Inventory } from '../inventory/inventory.ts';
import type { Clock } from '../runtime/clock.ts';
import type { ReconcileContext } from '../runtime/controller.ts';
import type { ControllerStores } from './stores.ts';

/** What the controllers that only write statuses need. */
export interface StatusDeps {
  client: KubeClient;
  stores: ControllerStores;
  inventory: Inventory;
  clock: Clock;
}

export interface StatusRun {
  deps: StatusDeps;
  key: string;
  context: ReconcileContext;
}
