import type { EventRecorder } from '../../kube/events.ts';
import type { Pod } from '../../kube/types.ts';
import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { JUPYTER_PAUSE_MS, LOGIN_PAUSE_MS } from './decide/next-look.ts';
import { reconcileInstance } from './act/reconcile.ts';
import type { InstanceConfig, InstanceDeps } from './act/run.ts';
import type { JupyterState } from './decide/observed.ts';
import { createPodChecks } from './pod-checks.ts';
import { instanceSources } from './sources.ts';
import { createVanished } from './vanished.ts';
import { WaitingLine } from './waiting-line.ts';

/** How the controller looks inside a pod. */
export interface PodProbes {
  /** Tries a login the way users take. Never rejects, takes at most ten seconds; without it, a Ready pod is enough. */
  checkLogin?: (pod: Pod) => Promise<boolean>;
  /** Looks for Jupyter; undefined when it cannot be told now. Never rejects, takes at most ten seconds. */
  checkJupyter?: (pod: Pod) => Promise<JupyterState | undefined>;
}

export interface InstanceControllerDeps extends CommonDeps, PodProbes {
  events: EventRecorder;
  config: InstanceConfig;
}

const WORKERS = 32;

/** The controller of GPUInstances, with the waiting line, the fence and the checks of one term. */
export function createInstanceController(deps: InstanceControllerDeps): Controller {
  const { checkLogin, checkJupyter, clock, inventory, log, stores } = deps;
  const line = new WaitingLine(inventory);
  const fence = new Fence(clock, log);
  const vanished = createVanished(log);
  const logins = checkLogin && createPodChecks({ check: checkLogin, pauseMs: LOGIN_PAUSE_MS, clock });
  const jupyters = checkJupyter && createPodChecks({ check: checkJupyter, pauseMs: JUPYTER_PAUSE_MS, clock });
  const instanceDeps: InstanceDeps = { ...deps, line, fence, vanished, logins, jupyters };
  return new Controller({
    name: 'gpuinstance',
    sources: [
      ...instanceSources(stores, { inventory, line, vanished, clock }),
      ...[logins, jupyters].flatMap((checks) => checks?.source ?? []),
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
