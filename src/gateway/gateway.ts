import type { Request, Router } from 'express';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { Agent } from 'undici';
import type { ReadStore } from '../kube/watch/store.ts';
import type { EndpointSlice, Pod, Service } from '../kube/types.ts';
import { Discovery } from './discovery/discovery.ts';
import type { MinuteCounter } from '../runtime/counter.ts';
import { KeyLimiter } from './key-limiter.ts';
import { GatewayMetrics } from './metrics.ts';
import type { Principal } from './principal.ts';
import { BodyBudget } from './calls/read-body.ts';
import { RetryBudget } from './balance/retry-budget.ts';
import { createModelRouter } from './router.ts';
import { createMemoryStore, type ResponseStore } from './state/response-store.ts';

export interface ModelGatewayDeps {
  /** May be narrowed to the label `berth.dev/model-server=true`; EndpointSlices carry the labels of their Service. */
  services: ReadStore<Service>;
  slices: ReadStore<EndpointSlice>;
  pods: ReadStore<Pod>;
  /** Berth's own namespace: the models there are for every tenant. */
  namespace: string;
  getPrincipal: (request: Request) => Principal;
  /** Sums per API key and minute; in memory, or shared by all replicas. The prefix tells apart what is counted. */
  counter: (prefix: string) => MinuteCounter;
  /** Of answers that are to be continued; absent: in the memory of the process. */
  store?: ResponseStore | undefined;
  registry: Registry;
  logger: Logger;
}

export interface ModelGateway {
  router: Router;
  start(): void;
  /** Ends discovery; calls under way may finish. */
  stop(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3000;
/** Below the 5 s after which uvicorn, the server of most engines, closes an idle connection. */
const KEEP_ALIVE_MS = 4000;
const HELD_BODIES_MAX = 512 * 1024 * 1024;

function now(): number {
  return performance.now();
}

/** The model gateway; what it keeps beside counters and answers lies in the memory of the process. */
export function createModelGateway(deps: ModelGatewayDeps): ModelGateway {
  const { counter, logger, registry, getPrincipal } = deps;
  const dispatcher = new Agent({ keepAliveTimeout: KEEP_ALIVE_MS, connect: { timeout: CONNECT_TIMEOUT_MS } });
  const discovery = new Discovery({ ...deps, dispatcher, now });
  const router = createModelRouter({
    getPrincipal,
    catalog: () => discovery.catalog,
    dispatcher,
    store: deps.store ?? createMemoryStore(now),
    limiter: new KeyLimiter(counter('model-requests'), counter('model-tokens')),
    metrics: new GatewayMetrics(registry, () => discovery.endpoints),
    bodies: new BodyBudget(HELD_BODIES_MAX),
    retries: new RetryBudget(),
    logger,
    now,
    wallClock: Date.now,
  });
  return {
    router,
    start: () => discovery.start(),
    stop: async () => {
      discovery.stop();
      await dispatcher.close();
    },
  };
}
