import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { CeilingsOf } from '../access/ceilings.ts';
import type { Principal } from '../access/principal.ts';
import type { TenantId } from '../access/tenants.ts';
import type { Clock } from '../lib/clock.ts';
import type { TokenMeter } from './billing/token-meter.ts';
import type { CacheSalts } from './calls/cache-salts.ts';
import type { Catalog } from './discovery/catalog.ts';
import type { OpenCalls } from './calls/open-calls.ts';
import type { BodyShares } from './limits/body-shares.ts';
import type { BudgetHolds } from './limits/budget-holds.ts';
import type { Limiter } from './limits/limiter.ts';
import type { RetryBudgets } from './limits/retry-budgets.ts';
import type { CallQueue } from './queue/call-queue.ts';
import type { LongLists } from './long-lists.ts';
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
  /** The caller of an earlier moment as it is now; undefined when it may do nothing any more. */
  caller: (principal: Principal) => Principal | undefined;
  tenantId: TenantId;
  holds: BudgetHolds;
  /** Has what calls of a tenant cost counted soon. */
  hurry: (tenant: string) => void;
  metrics: GatewayMetrics;
  /** Counts what calls to priced models cost. */
  meter: TokenMeter;
  open: OpenCalls;
  salts: CacheSalts;
  bodies: BodyShares;
  retries: RetryBudgets;
  queue: CallQueue;
  lists: LongLists;
  /** Absent where no server may scale to zero. */
  starts?: Starts | undefined;
  log: Logger;
  clock: Clock;
}
