import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.ts';
import type { RetryBudget } from './balance/retry-budget.ts';
import type { BodyBudget } from './calls/read-body.ts';
import type { Catalog } from './discovery/catalog.ts';
import type { KeyLimiter } from './key-limiter.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { ResponseStore } from './state/response-store.ts';

/** What the handlers of the model endpoints work with. Authentication has run before them. */
export interface ModelRouterDeps {
  /** Returns the current catalogue at every call. */
  catalog: () => Catalog;
  dispatcher: Dispatcher;
  store: ResponseStore;
  limiter: KeyLimiter;
  metrics: GatewayMetrics;
  bodies: BodyBudget;
  retries: RetryBudget;
  log: Logger;
  clock: Clock;
}
