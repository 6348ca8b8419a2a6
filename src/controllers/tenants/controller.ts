import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { reconcileTenant } from './reconcile.ts';
import { tenantSources } from './sources.ts';
import type { LimitOf } from './tenant-ceilings.ts';
import { UncountedQuotas } from './uncounted.ts';

export interface TenantDeps extends CommonDeps {
  /** Ceilings of a tenant as the policies have them now. */
  ceilingsOf: LimitOf;
  config: {
    /** Berth's own namespace. */
    namespace: string;
  };
}

const WORKERS = 4;

/** Keeps a TenantLimit and a ResourceQuota in the namespace of each tenant. */
export function createTenantController(deps: TenantDeps): Controller {
  const { clock, log, stores } = deps;
  const fence = new Fence(clock, log);
  const uncounted = new UncountedQuotas(clock);
  return new Controller({
    name: 'tenant',
    sources: tenantSources(stores),
    reconcile: (namespace, { signal }) => reconcileTenant({ ...deps, fence, uncounted }, namespace, signal),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('tenant', WORKERS),
  });
}
