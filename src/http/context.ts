import type { Router } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Node } from '../kube/types.ts';
import type { ApiKey } from '../resources/api-key.ts';
import type { InstanceProxy } from '../ports/ports.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import type { InstanceTemplate } from '../resources/instance-template.ts';
import type { SshKey } from '../resources/ssh-key.ts';
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

/** The watch caches that the API reads; `store-indexers.ts` has the indexes they need. */
export interface ApiStores {
  instances: ReadStore<GpuInstance>;
  sshKeys: ReadStore<SshKey>;
  templates: ReadStore<InstanceTemplate>;
  apiKeys: ReadStore<ApiKey>;
  nodes: ReadStore<Node>;
}

/** What the API needs from outside. */
export interface ApiDeps {
  client: KubeClient;
  stores: ApiStores;
  offers: OfferSource;
  /** The model endpoints, relative to the API base. Mounted behind authentication; reads bodies itself. */
  models: Router;
  /** Brings calls and browsers to the ports of instances. */
  proxy: InstanceProxy;
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
  authenticator: Authenticator;
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
