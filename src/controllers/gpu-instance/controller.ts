import type { Pod } from '../../kube/types.ts';
import { Lru } from '../../lib/lru.ts';
import type { MonitorLine } from '../../resources/pod/monitor.ts';
import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import type { Budgets } from '../budgets/budgets.ts';
import type { KeepLog } from '../history/keep-log.ts';
import { LogTakes } from '../history/log-takes.ts';
import { MONITOR_RETRY_MS } from './decide/deadlines.ts';
import { JUPYTER_PAUSE_MS, LOGIN_PAUSE_MS, TROUBLE_MS } from './decide/next-look.ts';
import { ClaimReads } from './act/claim-reads.ts';
import { readTrouble } from './act/read-trouble.ts';
import { reconcileInstance } from './act/reconcile.ts';
import type { InstanceDeps } from './act/run.ts';
import { type JupyterState, monitorStateOf } from './decide/observed.ts';
import { PodChecks } from './pod-checks.ts';
import { instanceSources } from './sources.ts';
import { TenantLine } from './tenant-line.ts';
import { WaitingLine } from './waiting-line.ts';

/** How the controller checks a pod from inside. */
export interface PodProbes {
  /** Tries a login as the SSH gateway does. Never rejects, takes at most ten seconds. */
  checkLogin?: (pod: Pod) => Promise<boolean>;
  /** Looks for Jupyter; undefined when it cannot look now. Never rejects, takes at most ten seconds. */
  checkJupyter?: (pod: Pod) => Promise<JupyterState | undefined>;
  /** Asks the exporter what it measures; undefined when it does not answer. Never rejects, takes at most ten seconds. */
  checkMonitor?: (pod: Pod) => Promise<MonitorLine | undefined>;
}

export type InstanceControllerDeps = CommonDeps &
  PodProbes &
  Pick<
    InstanceDeps,
    | 'networkPolicies'
    | 'sessions'
    | 'events'
    | 'noteStages'
    | 'noteEnding'
    | 'noteStatus'
    | 'config'
    | 'unrecorded'
    | 'unbilled'
    | 'ceilingsOf'
    | 'recordTimes'
  > & {
    budgets: Budgets;
    keepLog: KeepLog;
  };

const WORKERS = 32;
/** Pods are remembered until the status names them, so these are many times more than are needed. */
const MAX_MADE = 4_096;
/** One that is forgotten waits anew. */
const MAX_UNKEPT = 65_536;

/** The controller of GPUInstances. Its waiting line, fence and checks last for one term as the leader. */
export function createInstanceController(deps: InstanceControllerDeps): Controller {
  const { checkLogin, checkJupyter, checkMonitor, clock, inventory, log } = deps;
  const line = new WaitingLine(inventory, clock);
  const tenantLine = new TenantLine({ ...deps, line });
  const fence = new Fence(clock, log);
  const logins = checkLogin && new PodChecks({ check: checkLogin, pauseMs: LOGIN_PAUSE_MS, clock });
  const jupyters = checkJupyter && new PodChecks({ check: checkJupyter, pauseMs: JUPYTER_PAUSE_MS, clock });
  const askMonitor =
    checkMonitor &&
    (async (pod: Pod) => {
      const askedAt = clock.now();
      return monitorStateOf(await checkMonitor(pod), askedAt);
    });
  const monitors = askMonitor && new PodChecks({ check: askMonitor, pauseMs: MONITOR_RETRY_MS, clock });
  const troubles = new PodChecks({ check: (pod) => readTrouble(deps.client, pod), pauseMs: TROUBLE_MS, clock });
  const logs = new LogTakes({ keep: deps.keepLog, clock, log });
  const made = new Lru<string, string>(MAX_MADE);
  const unkept: InstanceDeps['unkept'] = new Lru(MAX_UNKEPT);
  const claimReads = new ClaimReads(deps);
  const instanceDeps: InstanceDeps = {
    ...deps,
    line,
    tenantLine,
    claimReads,
    fence,
    made,
    unkept,
    logins,
    jupyters,
    monitors,
    troubles,
    logs,
  };
  return new Controller({
    name: 'gpuinstance',
    sources: [
      ...instanceSources(instanceDeps),
      deps.budgets.source(tenantLine, line),
      logs.source,
      ...[logins, jupyters, monitors, troubles].flatMap((checks) => checks?.source ?? []),
    ],
    reconcile: (key, context) => reconcileInstance({ deps: instanceDeps, key, context }),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: deps.metrics('gpuinstance', WORKERS),
  });
}
