import type { RequestHandler, Router } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Stores } from '../caches/caches.ts';
import type { CacheName } from '../caches/table.ts';
import type { Inventory } from '../inventory/inventory.ts';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { InstancePorts } from '../ports/instance-ports.ts';
import type { MinuteCounter } from '../runtime/counter.ts';
import type { Authenticator } from './auth/authenticator.ts';
import { LastUsed } from './auth/last-used.ts';
import { InstanceEvents } from './events/instance-events.ts';
import { OfferEvents } from './events/offer-events.ts';
import { StreamRegistry } from './events/stream-registry.ts';
import { ClaimGate } from './instances/claim-gate.ts';
import { ClaimWaiter } from './instances/claim-waiter.ts';
import { PendingRemovals } from './instances/reaper.ts';
import { InstancePresenter } from './records/instance-presenter.ts';

export const API_CACHES = ['instances', 'sshKeys', 'templates', 'apiKeys', 'nodes'] as const satisfies CacheName[];

export type ApiStores = Stores<(typeof API_CACHES)[number]>;

/** Requests of one replica that wait for the controller's decision at the same time. */
const CLAIMS_AT_ONCE = 32;

export interface ApiDeps {
  client: KubeClient;
  stores: ApiStores;
  offers: Inventory;
  authenticator: Authenticator;
  /** The model endpoints, relative to the API base. Mounted behind authentication; reads bodies itself. */
  models: Router;
  /** Answers below /dashboard. */
  dashboard: RequestHandler;
  /** Brings calls and browsers to the ports of instances. */
  ports: InstancePorts;
  /** Counts calls per key; replicas share it when it is in Valkey. */
  requestCounter: MinuteCounter;
  /** Image of instances that name none. */
  defaultImage: string;
  trustProxy: boolean | number | string;
  clock: Clock;
  log: Logger;
  registry: Registry;
}

/** What the routes work with: the dependencies and the parts made from them, once per process. */
export type ApiContext = ReturnType<typeof createContext>;

export function createContext(deps: ApiDeps) {
  const { clock, stores } = deps;
  const instances = new InstancePresenter({ ...stores, defaultImage: deps.defaultImage });
  return {
    ...deps,
    lastUsed: new LastUsed({ ...deps, apiKeys: stores.apiKeys }),
    waiter: new ClaimWaiter(stores.instances, clock),
    gate: new ClaimGate(CLAIMS_AT_ONCE, clock),
    removals: new PendingRemovals(),
    instances,
    streams: new StreamRegistry(deps),
    instanceEvents: new InstanceEvents(stores.instances, instances),
    offerEvents: new OfferEvents(deps),
  };
}
