import { findCondition } from '../../../kube/conditions.ts';
import { GPU_INSTANCES } from '../../../resources/instances/gpu-instance.ts';
import { isIdleOpen } from '../decide/deadlines.ts';
import { monitorPauseMs } from '../decide/next-look.ts';
import type { JupyterState, MonitorState, Observed } from '../decide/observed.ts';
import type { Run } from './run.ts';
import { asksMonitor, isPodReady, podCondition } from '../decide/pod/pod-facts.ts';

// How long logins are tried. After that the instance counts as running since its pod was ready: otherwise an image that
// lets no login work would never be billed.
const LOGIN_LIMIT_MS = 60_000;

/** Whether a login works; once one has, no other is tried in this start. Simulated nodes have nothing to log in to. */
export function checkLogin({ deps, key }: Run, { instance, pod, now }: Observed): Observed['login'] {
  const { status } = instance;
  if (deps.logins === undefined || pod === undefined || !isPodReady(pod)) return undefined;
  if (status?.claim?.simulated === true || status?.ending !== undefined || status?.runtype === 'args') return undefined;
  if (status?.stages?.ready !== undefined) return 'works';
  if (deps.logins.last(key, pod) === true) return 'works';
  const readySince = Date.parse(podCondition(pod, 'Ready')?.lastTransitionTime ?? '');
  if (!(readySince + LOGIN_LIMIT_MS <= now)) return 'pending';
  deps.events.record(GPU_INSTANCES, instance, {
    type: 'Warning',
    reason: 'LoginFailed',
    message: `No login through the SSH gateway worked within ${LOGIN_LIMIT_MS / 1000} seconds. Check that the shell of the image works. The instance counts as running since its pod was ready.`,
  });
  return undefined;
}

/** Looks for Jupyter until it has answered once in this start; undefined when no look is due. */
export function checkJupyter({ deps, key }: Run, { instance, pod }: Observed): JupyterState | undefined {
  const { status } = instance;
  if (deps.jupyters === undefined || pod === undefined || !isPodReady(pod)) return undefined;
  if (status?.runtype !== 'jupyter' || status.claim?.simulated === true || status.ending !== undefined)
    return undefined;
  const known = findCondition(status.conditions, 'Jupyter');
  if (known?.status === 'True' && status.stages?.ready !== undefined) return 'answers';
  return deps.jupyters.last(key, pod) ?? 'unseen';
}

/** What the exporter in the pod said last; undefined when there is none, or before its first answer. */
export function checkMonitor({ deps, key }: Run, observed: Observed): MonitorState | undefined {
  const { pod } = observed;
  if (deps.monitors === undefined || pod === undefined || !asksMonitor(observed, pod)) return undefined;
  const known = deps.monitors.known(key, pod);
  return deps.monitors.last(key, pod, monitorPauseMs(known, isIdleOpen({ ...observed, monitor: known })));
}
