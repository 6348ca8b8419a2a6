import type { Logger } from 'pino';
import type { Inventory } from '../inventory/inventory.ts';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { ControllerMetrics } from '../runtime/controller-metrics.ts';
import type { ControllerStores } from './stores.ts';

/** What every controller of a leader is built from. */
export interface CommonDeps {
  /** Refuses writes while this replica may not lead. */
  client: KubeClient;
  stores: ControllerStores;
  inventory: Inventory;
  clock: Clock;
  log: Logger;
  metrics: (controller: string, workers: number) => ControllerMetrics;
}

/** Milliseconds that one reconcile may take. */
export const RECONCILE_TIMEOUT_MS = 60_000;
