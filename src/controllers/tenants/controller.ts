import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { reconcileTenant, type TenantDeps } from './reconcile.ts';
import { tenantSources } from './sources.ts';
import { UncountedQuotas } from './uncounted.ts';

const WORKERS = 4;

/** Keeps a TenantLimit and a ResourceQuota in the namespace of each tenant. */
export function createTenantController(deps: CommonDeps & TenantDeps): Controller {
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
