import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { CeilingsOf } from '../access/ceilings.ts';
import type { BudgetOf, KeyBudgetOf } from '../budgets/counted.ts';
import type { Clock } from '../lib/clock.ts';
import type { TokenMeter } from './billing/token-meter.ts';
import type { Catalog } from './discovery/catalog.ts';
import type { BodyShares } from './limits/body-shares.ts';
import type { Limiter } from './limits/limiter.ts';
import type { RetryBudgets } from './limits/retry-budgets.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { ResponseStore } from './state/response-store.ts';
import type { Starts } from './zero/starts.ts';

/** What the handlers of the model endpoints work with. Authentication has run before them. */
export interface ModelRouterDeps {
  /** Returns the current catalogue at every call. */
  catalog: () => Catalog;
  dispatcher: Dispatcher;
  store: ResponseStore;
  limiter: Limiter;
  ceilings: CeilingsOf;
  /** What was spent of the budget of a tenant. */
  budgets: BudgetOf;
  /** The same of the key that calls. */
  keyBudgets: KeyBudgetOf;
  metrics: GatewayMetrics;
  /** Counts what calls to priced models cost. */
  meter: TokenMeter;
  bodies: BodyShares;
  retries: RetryBudgets;
  /** Absent where no server may scale to zero. */
  starts?: Starts | undefined;
  log: Logger;
  clock: Clock;
}
