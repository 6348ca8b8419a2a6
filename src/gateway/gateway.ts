import type { Router } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Principal } from '../access/principal.ts';
import type { BudgetOf, KeyBudgetOf } from '../budgets/counted.ts';
import type { AccessWatch } from '../access/access-watch.ts';
import type { CeilingsOf } from '../access/ceilings.ts';
import { tenantIds } from '../access/tenants.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { KubeClient } from '../kube/client/client.ts';
import type { InferencePool } from '../kube/inference-pools.ts';
import type { ModelServer } from '../resources/model-servers/model-server.ts';
import type { EndpointSlice, Lease, Namespace, Pod, Service } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import { Agent } from '../lib/lean-http.ts';
import type { MinuteCounter, SharedHoldings } from '../runtime/counter.ts';
import { watchBilling, TokenMeter } from './billing/token-meter.ts';
import { RecordWriter } from './billing/record-writer.ts';
import { OpenCalls } from './calls/open-calls.ts';
import type { ModelRouterDeps } from './deps.ts';
import { CacheSalts } from './calls/cache-salts.ts';
import type { EngineSecrets } from '../resources/model-servers/engine-credential.ts';
import { Discovery } from './discovery/discovery.ts';
import type { FollowedNamespaces } from './discovery/types.ts';
import { BodyShares } from './limits/body-shares.ts';
import { BudgetHolds } from './limits/budget-holds.ts';
import { Limiter } from './limits/limiter.ts';
import { RetryBudgets } from './limits/retry-budgets.ts';
import { CallQueue } from './queue/call-queue.ts';
import { LongLists } from './long-lists.ts';
import { GatewayMetrics } from './metrics.ts';
import { createModelCalls, createModelRouter } from './router.ts';
import { MemoryStore, type ResponseStore } from './state/response-store.ts';
import { SharedStore } from './state/shared-store.ts';
import { ModelLeases } from './zero/model-leases.ts';
import { Starts } from './zero/starts.ts';

/** What the gateway needs for models that scale to zero. */
export interface ScaleFromZero {
  client: Pick<KubeClient, 'patch'>;
  /** Those of Berth's own namespace with the label of model servers. */
  leases: ReadStore<Lease>;
  /** Where the operator lets Berth scale workloads. */
  namespaces: readonly string[];
  /** This replica. */
  identity: string;
}

export interface ModelGatewayDeps {
  /** Writes the records of tokens. */
  client: Pick<KubeClient, 'apply' | 'list'>;
  /** This replica. */
  replica: string;
  /** May be narrowed to the label `berth.dev/model-server=true`. */
  services: ReadStore<Service>;
  /** May be narrowed like the Services, whose labels EndpointSlices carry. */
  slices: ReadStore<EndpointSlice>;
  /** May be narrowed like the Services. */
  inferencePools: ReadStore<InferencePool>;
  pods: ReadStore<Pod>;
  /** Whose label lets them share model servers. */
  namespaces: ReadStore<Namespace>;
  /** Servers outside the cluster. Only those of Berth's own namespace count. Absent where none is called. */
  modelServers?: ReadStore<ModelServer> | undefined;
  tenants: FollowedNamespaces;
  /** Berth's own namespace: every tenant may call the models there. */
  namespace: string;
  engineSecrets: EngineSecrets;
  /** The caller of an earlier moment as it is now; undefined when it may do nothing any more. */
  caller: (principal: Principal) => Principal | undefined;
  /** Ends the calls of callers who lose the right to them. */
  access: Pick<AccessWatch, 'open'>;
  /** A secret that all replicas share, for salts of prefix caches. */
  saltKey: () => Promise<Buffer>;
  ceilings: CeilingsOf;
  /** What was spent of the budget of a tenant. */
  budgets: BudgetOf;
  /** The same of the key that calls. */
  keyBudgets: KeyBudgetOf;
  /** Sums per API key or tenant and minute, in memory or shared by all replicas. The prefix names what is counted. */
  counter: (prefix: string) => MinuteCounter;
  /** What all replicas hold of budgets. Undefined where each decides by what it knows. */
  holdings?: SharedHoldings | undefined;
  /** Keeps the answers that clients may continue; by default in the memory of the process. */
  store?: ResponseStore | undefined;
  /** Absent where no server may scale to zero. */
  scaleFromZero?: ScaleFromZero | undefined;
  /** Aborts when the replica stops. */
  stopping: AbortSignal;
  registry: Registry;
  /** Whether metrics name API keys, and models that one tenant has for itself. */
  metricsNameTenants: boolean;
  log: Logger;
  clock: Clock;
  /** Says on which day a call ended, and which month it is for budgets. */
  billingClock: Pick<Clock, 'now'>;
}

export interface ModelGateway {
  router: Router;
  /** What the router serves for a POST to exactly these paths. */
  calls: ReturnType<typeof createModelCalls>;
  start(): void;
  /** Ends the calls under way, each with an error in the shape of its dialect. */
  endCalls: () => void;
  /** Ends discovery, lets calls under way finish, and writes what they cost. */
  stop(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3000;
/** Below the 5 s after which uvicorn, the server of most engines, closes an idle connection. */
const KEEP_ALIVE_MS = 4000;
const HELD_BODIES_MAX = 512 * 1024 * 1024;

/** The model gateway. Apart from counters and stored answers, its state is in the memory of the process. */
export function createModelGateway(deps: ModelGatewayDeps): ModelGateway {
  const { caller, ceilings, counter, log, registry, clock, scaleFromZero } = deps;
  const dispatcher = new Agent({ keepAliveTimeout: KEEP_ALIVE_MS, connect: { timeout: CONNECT_TIMEOUT_MS } });
  const memory = scaleFromZero && new ModelLeases({ ...scaleFromZero, namespace: deps.namespace, clock, log });
  const discovery: Discovery = new Discovery({
    ...deps,
    dispatcher,
    timeouts: { keepAliveMs: KEEP_ALIVE_MS, connectMs: CONNECT_TIMEOUT_MS },
    memory,
    mayScale: (namespace) => scaleFromZero?.namespaces.includes(namespace) ?? false,
    onRebuilt: () => {
      starts?.changed();
      queue.changed();
    },
  });
  const tenantId = tenantIds(deps.namespaces);
  const billed = { ...clock, now: () => deps.billingClock.now() };
  const meter = new TokenMeter({ replica: deps.replica, clock: billed });
  const writer = new RecordWriter({ ...deps, meter });
  const ended = new AbortController();
  let writing: Promise<void> | undefined;
  watchBilling(registry, meter);
  const starts = memory && startsOf(deps, memory, discovery);
  const metrics: GatewayMetrics = new GatewayMetrics(registry, {
    endpoints: () => discovery.endpoints,
    waiting: () => starts?.waiting ?? [],
    queued: () => queue.models,
    namesTenants: deps.metricsNameTenants,
  });
  const queue = new CallQueue({
    find: (tenant, model) => discovery.catalog.find(tenant, model),
    read: (endpoints) => discovery.read(endpoints),
    waited: (model, seconds) => metrics.waited(model, seconds),
    stopping: deps.stopping,
    clock,
  });
  const open = new OpenCalls(deps.access);
  const salts = new CacheSalts({ ...deps, tenantId });
  const holds = new BudgetHolds({ holdings: undefined, ...deps, tenantId, clock: billed });
  const inner: ModelRouterDeps = {
    catalog: () => discovery.catalog,
    dispatcher,
    store: new SharedStore(deps.store ?? new MemoryStore(clock), clock),
    limiter: new Limiter({ requests: counter('model-requests'), tokens: counter('model-tokens'), ceilings, clock }),
    ceilings,
    caller,
    tenantId,
    holds,
    hurry: (tenant) => writer.hurry(tenant),
    metrics,
    meter,
    open,
    salts,
    bodies: new BodyShares(HELD_BODIES_MAX),
    retries: new RetryBudgets(),
    queue,
    lists: new LongLists(clock),
    starts,
    log,
    clock,
  };
  return {
    router: createModelRouter(inner),
    calls: createModelCalls(inner),
    start: () => {
      discovery.start();
      salts.load();
      starts?.start();
      writing = writer.run(ended.signal);
    },
    endCalls: () => open.endAll(),
    stop: async () => {
      starts?.stop();
      await discovery.stop();
      await Promise.all([dispatcher.close(), discovery.close()]);
      // No call is under way any more: this writes all that is left.
      ended.abort();
      await writing;
      holds.close();
    },
  };
}

function startsOf(
  { services, pods, stopping, clock }: ModelGatewayDeps,
  leases: ModelLeases,
  discovery: Discovery,
): Starts {
  const catalog = () => discovery.catalog;
  const [states, endpoints] = [() => discovery.states, () => discovery.endpoints];
  return new Starts({ leases, services, pods, catalog, states, endpoints, stopping, clock });
}
