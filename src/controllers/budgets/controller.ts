import { nextPercentMs } from '../../budgets/accounts.ts';
import { meterBegan } from '../../resources/instances/meter.ts';
import { isBudget } from '../../resources/tenants/budget.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import { changeSource } from '../change-source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { DelayedCall } from '../delayed-call.ts';
import type { TenantLimit } from '../../resources/tenants/tenant-limit.ts';
import type { ControllerStores } from '../stores.ts';
import type { Budgets } from './budgets.ts';
import { keepStatuses, type StatusDeps } from './statuses.ts';

export type BudgetControllerDeps = CommonDeps &
  Pick<StatusDeps, 'events'> & {
    budgets: Budgets;
    /** Calls the listener with each namespace of which usage records changed; undefined stands for all. */
    onRecords: (listener: (namespace: string | undefined) => void) => () => void;
  };

const WORKERS = 2;
/** Claims and ends come in bursts: one look counts them all. */
const BURST_MS = 200;
/** A budget is counted this often at least, so that a clock that was set is noticed. */
const LOOK_MS = 20_000;
/** And not more often than this by time alone. */
const PAUSE_MS = 250;

function isMetered(limit: TenantLimit | undefined): boolean {
  return isBudget(limit?.spec.budget) || limit?.status?.budget !== undefined || limit?.status?.keyBudgets !== undefined;
}

/** Namespaces that have a budget, or have or had a key with one. */
function metered({ tenantLimits, apiKeys }: ControllerStores): Set<string> {
  const limits = [...tenantLimits.values()].filter(isMetered);
  const keys = [...apiKeys.values()].filter(({ spec, status }) => spec.limits?.budget ?? status?.budget);
  return new Set([...limits, ...keys].map(({ metadata }) => metadata.namespace ?? ''));
}

/** Namespaces where a start came or went, or usage records, some time after the change. */
function spendingSource({ stores, clock, budgets, onRecords }: BudgetControllerDeps): Source {
  return {
    synced: Promise.resolve(),
    start(add: AddKey) {
      const changed = new Set<string>();
      const call = new DelayedCall(clock, BURST_MS, () => {
        for (const namespace of changed) add(namespace);
        changed.clear();
      });
      const note = (namespace: string): void => {
        changed.add(namespace);
        call.request();
      };
      for (const namespace of metered(stores)) add(namespace);
      const stops = [
        stores.instances.onChange(({ before, after }) => {
          const [old, now] = [before?.status, after?.status];
          const isSame =
            old?.claim?.grantedAt === now?.claim?.grantedAt &&
            (old?.reserved === undefined) === (now?.reserved === undefined) &&
            meterBegan(old) === meterBegan(now) &&
            old?.ending?.at === now?.ending?.at;
          const { namespace = '' } = (after ?? before)?.metadata ?? {};
          if (!isSame && budgets.of(namespace).length > 0) note(namespace);
        }),
        onRecords((namespace) => {
          // Replicas write the token records of every tenant every few seconds.
          for (const one of namespace === undefined ? metered(stores) : [namespace])
            if (namespace === undefined || budgets.of(one).length > 0) note(one);
        }),
      ];
      return () => {
        for (const stop of stops) stop();
        call.cancel();
      };
    },
  };
}

async function reconcile(
  deps: StatusDeps & { budgets: Budgets },
  namespace: string,
  signal: AbortSignal,
): Promise<Result> {
  const counted = deps.budgets.look(namespace);
  // When the usage records are read, they bring the namespace here again.
  if (counted === undefined) return undefined;
  await keepStatuses(deps, { namespace, counted, keyBudgets: deps.budgets.toRemember(namespace), signal });
  if (counted.length === 0) return undefined;
  const now = deps.clock.now();
  const due = counted.map(({ lines, month }) => Math.min(nextPercentMs(lines), month.to - now));
  return { requeueAfterMs: Math.min(LOOK_MS, Math.max(PAUSE_MS, Math.min(...due))) };
}

/** Counts what tenants and keys have spent of their budgets, and says so in TenantLimits and APIKeys. */
export function createBudgetController(deps: BudgetControllerDeps): Controller {
  const { clock, log, stores } = deps;
  const fence = new Fence(clock, log);
  return new Controller({
    name: 'budget',
    sources: [
      changeSource(stores.tenantLimits, ({ before, after }) => {
        const { namespace = '' } = (after ?? before)?.metadata ?? {};
        // The budgets of keys are to be remembered there, as soon as it is there.
        const isNew = before === undefined && deps.budgets.of(namespace).length > 0;
        return isNew || isMetered(before) || isMetered(after) ? [namespace] : [];
      }),
      changeSource(stores.apiKeys, ({ before, after }) => {
        const hasBudget = [before, after].some((key) => key?.spec.limits?.budget ?? key?.status?.budget);
        return hasBudget ? [(after ?? before)?.metadata.namespace ?? ''] : [];
      }),
      spendingSource(deps),
    ],
    reconcile: (namespace, { signal }) => reconcile({ ...deps, fence }, namespace, signal),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('budget', WORKERS),
  });
}
