import type { Router } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Stores } from '../caches/caches.ts';
import type { CacheName } from '../caches/table.ts';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { InstancePorts } from '../ports/instance-ports.ts';
import type { Authenticator } from './auth/authenticator.ts';
import type { LastUsed } from './auth/last-used.ts';
import type { InstanceEvents } from './events/instance-events.ts';
import type { OfferEvents } from './events/offer-events.ts';
import type { StreamRegistry } from './events/stream-registry.ts';
import type { MinuteCounter } from '../runtime/counter.ts';
import type { Abandoned } from './instances/abandoned.ts';
import type { ClaimGate } from './instances/claim-gate.ts';
import type { ClaimWaiter } from './instances/claim-waiter.ts';
import type { TemplateFinder } from './instances/templates.ts';
import type { OfferSource } from './inventory.ts';
import type { InstancePresenter } from './records/instance-presenter.ts';

/** The caches that the API reads. */
export const API_CACHES = ['instances', 'sshKeys', 'templates', 'apiKeys', 'nodes'] as const satisfies CacheName[];

export type ApiStores = Stores<(typeof API_CACHES)[number]>;

/** What the API needs from outside. */
export interface ApiDeps {
  client: KubeClient;
  stores: ApiStores;
  offers: OfferSource;
  authenticator: Authenticator;
  /** The model endpoints, relative to the API base. Mounted behind authentication; reads bodies itself. */
  models: Router;
  /** The pages below /dashboard. */
  dashboard: Router;
  /** Brings calls and browsers to the ports of instances. */
  ports: InstancePorts;
  /** Counts calls per key; shared by replicas when it lies in Valkey. */
  requestCounter: MinuteCounter;
  /** Berth's own namespace. */
  namespace: string;
  /** Image of instances that name none. */
  defaultImage: string;
  trustProxy: boolean | number | string;
  clock: Clock;
  log: Logger;
  registry: Registry;
}

/** What routers work with: the dependencies and the parts made from them. */
export interface ApiContext extends ApiDeps {
  lastUsed: LastUsed;
  waiter: ClaimWaiter;
  gate: ClaimGate;
  abandoned: Abandoned;
  templates: TemplateFinder;
  instances: InstancePresenter;
  streams: StreamRegistry;
  instanceEvents: InstanceEvents;
  offerEvents: OfferEvents;
}
