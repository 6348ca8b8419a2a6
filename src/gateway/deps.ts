import type { Request } from 'express';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Catalog } from './discovery/catalog.ts';
import type { KeyLimiter } from './key-limiter.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { Principal } from './principal.ts';
import type { BodyBudget } from './calls/read-body.ts';
import type { RetryBudget } from './balance/retry-budget.ts';
import type { ResponseStore } from './state/response-store.ts';

/** What the handlers of the model endpoints work with. */
export interface ModelRouterDeps {
  /** The caller that authentication, which runs before the router, found. */
  getPrincipal: (request: Request) => Principal;
  /** The current one, at every call. */
  catalog: () => Catalog;
  dispatcher: Dispatcher;
  store: ResponseStore;
  limiter: KeyLimiter;
  metrics: GatewayMetrics;
  bodies: BodyBudget;
  retries: RetryBudget;
  logger: Logger;
  /** Milliseconds, monotonic. */
  now: () => number;
  /** Milliseconds since the epoch. */
  wallClock: () => number;
}
