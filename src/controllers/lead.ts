import type { GpuPoolSpec } from '../resources/gpu-pool.ts';
import { catchUp, type CatchUpDeps } from './catch-up.ts';
import type { RunSignals } from '../runtime/controller.ts';
import { Budgets } from './budgets/budgets.ts';
import { type BudgetControllerDeps, createBudgetController } from './budgets/controller.ts';
import { BudgetRecords, type BudgetRecordsDeps } from './budgets/records.ts';
import { createHistoryController } from './history/controller.ts';
import { type KeepLog, LogKeeper } from './history/keep-log.ts';
import { PullAttempts } from './images/attempts.ts';
import { createImageController } from './images/controller.ts';
import { PullNames } from './images/pull-pod.ts';
import { createInstanceController, type InstanceControllerDeps } from './gpu-instance/controller.ts';
import { keepTrying } from './keep-trying.ts';
import { ensureDefaultPool } from './default-pool.ts';
import { createPodController } from './pods/controller.ts';
import { ensurePriorityClasses } from './priority-classes.ts';
import { createStatusController } from './status/status-controller.ts';
import { apiKeyStatus } from './status/api-key.ts';
import { logIsolation, poolStatus } from './status/gpu-pool.ts';
import { templateStatus } from './status/instance-template.ts';
import { modelServerStatus, type OutsideServers } from './status/model-server.ts';
import { sshKeyStatus } from './status/ssh-key.ts';
import { tenantPolicyStatus } from './status/tenant-policy.ts';
import { createModelServerController, type ModelServerOptions } from './model-servers/controller.ts';
import { createTenantController } from './tenants/controller.ts';
import { createRegistryController } from './tenants/registries.ts';
import { SessionReports } from './session-reports.ts';
import type { TenantDeps } from './tenants/reconcile.ts';

type LeadDeps = Omit<InstanceControllerDeps, 'budgets' | 'keepLog'> &
  TenantDeps &
  BudgetRecordsDeps &
  Pick<CatchUpDeps, 'onBehind'> & {
    modelServers?: ModelServerOptions | undefined;
    outsideServers?: OutsideServers | undefined;
    defaultPool?: GpuPoolSpec | undefined;
    hearsSessions: boolean;
    /** Shows metrics of the whole fleet until the returned function is called. One replica shows them: sums stay true. */
    showFleet: () => () => void;
  };

/**
 * Runs all controllers until the signals end this term as the leader, or until it cannot begin. Nothing the
 * leader decided is carried over from an earlier term.
 */
export async function lead(deps: LeadDeps, signals: RunSignals): Promise<void> {
  const { client, clock, defaultPool } = deps;
  const over = AbortSignal.any([signals.stop, signals.abort]);
  // Before the caches catch up, so that they have it.
  const makePool = async (signal: AbortSignal): Promise<void> => {
    if (defaultPool === undefined) return;
    await ensureDefaultPool(client, { namespace: deps.config.namespace, spec: defaultPool }, signal);
  };
  if (!(await keepTrying(deps, 'GPUPool default', makePool, over))) return;
  if (!(await catchUp(deps, over))) return;
  // What an earlier term of this process left open is in the caches by now, or never came to be.
  deps.inventory.forgetAll();
  if (!(await keepTrying(deps, 'PriorityClasses', (signal) => ensurePriorityClasses(client, signal), over))) return;
  logIsolation(deps);
  const { inventory } = deps;
  const records = new BudgetRecords(deps);
  const budgets = new Budgets({
    ...deps,
    assumedClaim: (key) => inventory.unseen(key)?.status?.claim,
    recordedAt: (now) => records.at(now),
  });
  const onRecords: BudgetControllerDeps['onRecords'] = (listener) => records.onChange(listener);
  const sessions = deps.hearsSessions
    ? new SessionReports({ client, clock, log: deps.log, namespace: deps.config.namespace })
    : undefined;
  const pulls = { attempts: new PullAttempts(clock), names: new PullNames() };
  const keeper = new LogKeeper(deps);
  const keepLog: KeepLog = (subject, signal) => keeper.keep(subject, signal);
  const controllers = [
    createPodController({ ...deps, keepLog }),
    createInstanceController({ ...deps, budgets, sessions, keepLog }),
    createBudgetController({ ...deps, budgets, onRecords }),
    createStatusController(deps, sshKeyStatus(deps.stores)),
    createStatusController(deps, templateStatus(deps.stores, deps.config.namespace)),
    createStatusController(deps, apiKeyStatus(deps.stores)),
    createStatusController(deps, poolStatus({ ...deps, pulls })),
    createImageController({ ...deps, pulls }),
    createStatusController(deps, tenantPolicyStatus(deps)),
    createTenantController(deps),
    createRegistryController(deps),
    createHistoryController(deps),
    ...(deps.outsideServers === undefined
      ? []
      : [createStatusController(deps, modelServerStatus(deps.outsideServers, clock))]),
    ...(deps.modelServers === undefined ? [] : [createModelServerController(deps, deps.modelServers)]),
  ];
  const hideFleet = deps.showFleet();
  try {
    await Promise.all([...controllers, ...(sessions ? [sessions] : [])].map((one) => one.run(signals)));
  } finally {
    hideFleet();
    records.close();
  }
}
