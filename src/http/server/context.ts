import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type RequestHandler, type Router } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { AccessWatch } from '../../access/access-watch.ts';
import type { Authenticator } from '../../access/authenticator.ts';
import type { CeilingsOf } from '../../access/ceilings.ts';
import { tenantIds, type Tenants } from '../../access/tenants.ts';
import { budgetReader, deletedKeyBudgetReader, keyBudgetReader } from '../../budgets/counted.ts';
import type { Stores } from '../../caches/caches.ts';
import type { CacheName } from '../../caches/table.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { KubeClient } from '../../kube/client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { InTurn } from '../../lib/in-turn.ts';
import { Paces } from '../../lib/paces.ts';
import { FairShares } from '../../lib/shares.ts';
import { UnreadAnswers } from '../../lib/unread-answers.ts';
import type { InstancePorts } from '../../ports/instance-ports.ts';
import type { ReadMonitor } from '../../ports/read-monitor.ts';
import type { Tracer } from '../../runtime/tracing/tracer.ts';
import { ClaimGate } from '../features/instances/claim-gate.ts';
import { ClaimWaiter } from '../features/instances/claim-waiter.ts';
import { InstanceEvents } from '../features/instances/instance-events.ts';
import { nearLimitsReader } from '../features/instances/near-limits.ts';
import { placesReader } from '../features/instances/places-in-line.ts';
import { InstancePresenter } from '../features/instances/presenter.ts';
import { PendingRemovals } from '../features/instances/reaper.ts';
import { OfferEvents } from '../features/offers/offer-events.ts';
import { StartTimes } from '../features/offers/start-times.ts';
import type { TerminalGateway } from '../features/terminal/pass-on.ts';
import type { WebhookParts } from '../features/webhooks/routes.ts';
import { LastUsed } from '../interface/auth/last-used.ts';
import type { People } from '../interface/auth/people.ts';
import { tenantBodies } from '../interface/bodies/body-shares.ts';
import { jsonBody } from '../interface/bodies/json-body.ts';
import { StreamRegistry } from '../interface/events/stream-registry.ts';
import { objectNames } from '../interface/idempotency.ts';
import { ListPaces } from '../interface/list-paces.ts';
import type { CallLimits } from '../interface/request-limit.ts';
import { Proxies, type Trust } from './proxies.ts';
import { shareAmongStrangers } from './strangers.ts';
import { Connections, countAnswers, keepAccepted } from './connections.ts';
import { takeTurns, Turns } from './turns.ts';

export const API_CACHES = [
  'instances',
  'pods',
  'sshKeys',
  'templates',
  'apiKeys',
  'registries',
  'tenantLimits',
  'nodes',
  'pools',
  'namespaces',
] as const satisfies CacheName[];

export type ApiStores = Stores<(typeof API_CACHES)[number]>;

/** Logs, histories and measurements that a replica reads at once. An answer may hold 1 MiB of text. */
const LOG_READS_AT_ONCE = 64;
/** Readings of usage at once. One may take a hundred pages of records, which the replica parses. */
const USAGE_READS_AT_ONCE = 8;
/** Logs and histories that a replica follows at once. With the readings they leave connections for the watches: see MAX_STREAMS of the client. */
const LOG_FOLLOWS_AT_ONCE = 128;
/** Characters of followed logs that a tenant reads in a second: some hundredths of a processor. */
const LOG_CHARS_PER_SECOND = 4 * 2 ** 20;
/** Requests of one replica that wait for the controller's decision at the same time. */
const CLAIMS_AT_ONCE = 32;
const MAX_CONNECTIONS = 10_000;
const MAX_RESTING_PER_ADDRESS = 1000;

/** The model endpoints, relative to the API base. They stand behind authentication, and read bodies themselves. */
export interface ModelEndpoints {
  /** All of them. */
  router: Router;
  /** What the router serves for a POST to exactly these paths. May be served without Express. Never rejects. */
  calls: ReadonlyMap<string, (request: IncomingMessage, response: ServerResponse) => Promise<void>>;
  /** Ends the calls under way, each with an error in the shape of its dialect. */
  endCalls: () => void;
}

export interface ApiDeps {
  client: KubeClient;
  stores: ApiStores;
  offers: Inventory;
  authenticator: Authenticator;
  /** Ends what callers have under way when they lose the right to it. */
  access: Pick<AccessWatch, 'open'>;
  tenants: Pick<Tenants, 'isKnown' | 'isGone' | 'refusal'>;
  models: ModelEndpoints;
  /** Answers below /dashboard. */
  dashboard: RequestHandler;
  /** Knows the people whom the dashboard vouches for; undefined where there is no dashboard. */
  people?: People | undefined;
  /** Brings calls and browsers to the ports of instances. */
  ports: InstancePorts;
  /** Undefined where webhooks are off. */
  webhooks?: WebhookParts | undefined;
  /** Brings clients to shells in instances; undefined where no SSH gateway is known. */
  terminals?: TerminalGateway | undefined;
  /** Asks the exporter in an instance. Rejects when it does not answer, or with the signal. */
  readMonitor: ReadMonitor;
  /** The limits of calls per minute, of keys and tenants. */
  calls: CallLimits;
  ceilings: CeilingsOf;
  /** 32 bytes that all replicas share; read once, on first use. */
  sessionKey: () => Promise<Buffer>;
  /** Berth's own namespace. */
  namespace: string;
  /** Image of instances that name none. */
  defaultImage: string;
  trustProxy: boolean | number | string;
  clock: Clock;
  log: Logger;
  registry: Registry;
  /** Traces requests; undefined where nothing is traced. */
  tracer?: Tracer | undefined;
  /** Connections at once; 10,000 where it is absent. */
  maxConnections?: number;
}

/** The value of Express's `trust proxy` as it understands it. */
function trustOf(trustProxy: ApiDeps['trustProxy']): Trust {
  return express().set('trust proxy', trustProxy).get('trust proxy fn') as Trust;
}

/** What the routes work with: the dependencies and the parts made from them, once per process. */
export type ApiContext = ReturnType<typeof createContext>;

export function createContext(deps: ApiDeps) {
  const { ceilings, clock, maxConnections = MAX_CONNECTIONS, sessionKey, stores } = deps;
  const templates = { ...stores, own: deps.namespace };
  const connections = new Connections({ most: maxConnections, perAddress: MAX_RESTING_PER_ADDRESS });
  const proxies = new Proxies(trustOf(deps.trustProxy));
  const turns = new Turns(clock);
  const budgets = budgetReader(stores.tenantLimits, clock);
  const keyBudgets = keyBudgetReader(stores.apiKeys, clock);
  const instances = new InstancePresenter({
    complete: (instance) => stores.instances.complete(instance),
    nodes: stores.nodes,
    templates,
    defaultImage: deps.defaultImage,
    placeOf: placesReader(deps),
    nearLimits: nearLimitsReader({
      ...deps,
      budgets,
      keyBudgets,
      deletedKeyBudgets: deletedKeyBudgetReader(stores.tenantLimits, clock),
    }),
  });
  return {
    ...deps,
    budgets,
    keyBudgets,
    templates,
    lastUsed: new LastUsed({ ...deps, apiKeys: stores.apiKeys }),
    waiter: new ClaimWaiter(stores.instances, clock),
    connections,
    keepAccepted: keepAccepted(connections, maxConnections),
    proxies,
    strangers: shareAmongStrangers(turns, proxies.addressOf),
    countAnswers: countAnswers(new UnreadAnswers(clock)),
    takeTurns: takeTurns(turns),
    turns,
    readJson: jsonBody(tenantBodies(ceilings), clock),
    idempotentName: objectNames(sessionKey),
    gate: new ClaimGate(CLAIMS_AT_ONCE, clock),
    removals: new PendingRemovals(),
    instances,
    streams: new StreamRegistry(deps),
    /** Of logs, histories and measurements. A tenant may have as many under way as are free for others. */
    logReads: new FairShares(LOG_READS_AT_ONCE, 1),
    logFollows: new FairShares(LOG_FOLLOWS_AT_ONCE, 1),
    logPaces: new Paces(clock, LOG_CHARS_PER_SECOND),
    listPaces: new ListPaces(clock),
    liveLooks: new InTurn(),
    usageReads: new FairShares(USAGE_READS_AT_ONCE, 1),
    instanceEvents: new InstanceEvents(stores.instances, instances, tenantIds(stores.namespaces)),
    offerEvents: new OfferEvents(deps),
    startTimes: new StartTimes(stores.instances, deps.offers),
  };
}
