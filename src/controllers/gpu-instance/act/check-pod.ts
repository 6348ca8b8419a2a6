import { findCondition } from '../../../kube/conditions.ts';
import type { Pod } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { isIdleOpen, nodeLostSince } from '../decide/deadlines.ts';
import { monitorPauseMs, TROUBLE_MS } from '../decide/next-look.ts';
import type { JupyterState, MonitorState, Observed } from '../decide/observed.ts';
import type { Run } from './run.ts';
import {
  asksMonitor,
  hasEvents,
  isPodReady,
  logOf,
  mainStatus,
  podCondition,
  scheduledCondition,
} from '../decide/pod/pod-facts.ts';

// How long logins are waited for from the moment at which the container first ran. After that the instance counts as
// running if the container has run for as long without a restart: one that ends again and again is no instance that
// runs. The bill does not depend on it.
const LOGIN_LIMIT_MS = 60_000;

function runsSince(pod: Pod, status: GpuInstanceStatus | undefined): number {
  const { restartCount = 0, state } = mainStatus(pod) ?? {};
  // The status has it by a clock that is not ahead.
  const first = restartCount === 0 ? status?.stages?.started : undefined;
  return Date.parse(first ?? state?.running?.startedAt ?? podCondition(pod, 'Ready')?.lastTransitionTime ?? '');
}

/** Whether a login works; once one has, no other is tried in this start. Simulated nodes have nothing to log in to. */
export function checkLogin({ deps, key }: Run, { instance, pod, now }: Observed): Observed['login'] {
  const { status } = instance;
  if (deps.logins === undefined || pod === undefined || !isPodReady(pod)) return undefined;
  if (status?.claim?.simulated === true || status?.runtype === 'args') return undefined;
  if (status?.stages?.ready !== undefined) return 'works';
  if (status?.ending !== undefined) return 'pending';
  if (deps.logins.last(key, pod) === true) return 'works';
  if (!(runsSince(pod, status) + LOGIN_LIMIT_MS <= now)) return 'pending';
  deps.events.record(GPU_INSTANCES, instance, {
    type: 'Warning',
    reason: 'LoginFailed',
    message: `No login through the SSH gateway worked within ${LOGIN_LIMIT_MS / 1000} seconds. Check that the shell of the image works. The instance counts as running since its pod was ready, and is billed since its container ran.`,
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

/** What Events say of a pod that takes long to get its node or to be set up; undefined while nothing is known. */
export function checkTrouble({ deps, key }: Run, observed: Observed): string | undefined {
  const { instance, pod, now } = observed;
  const { ending, claim } = instance.status ?? {};
  if (pod === undefined || ending !== undefined || !hasEvents(observed, pod)) return undefined;
  const since = Date.parse(scheduledCondition(pod)?.lastTransitionTime ?? claim?.grantedAt ?? '');
  return since + TROUBLE_MS > now ? undefined : deps.troubles.last(key, pod);
}

/** Whether a start that ends still waits for the end of its log to be kept; the first look begins to keep it. */
export function keepsLog({ deps, key }: Run, observed: Observed): boolean {
  const { instance, pod } = observed;
  const { ending, claim } = instance.status ?? {};
  if (deps.logs === undefined || pod === undefined || ending === undefined || claim?.simulated === true) return false;
  // Of one that is being deleted the log is kept when it has ended, before its finalizer goes.
  const phase = pod.metadata.deletionTimestamp === undefined ? logOf(pod) : undefined;
  // A node that does not answer gives no log.
  if (phase === undefined || nodeLostSince(observed) !== Number.POSITIVE_INFINITY) return false;
  return !deps.logs.isOver(key, { pod, phase });
}
