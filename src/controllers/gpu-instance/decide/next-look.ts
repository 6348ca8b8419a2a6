import type { GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { instanceState, type InstanceState } from '../../../resources/instances/instance-state.ts';
import { deadlines, MONITOR_RETRY_MS, NODE_GRACE_MS, nodeLostSince } from './deadlines.ts';
import type { MonitorState, Observed } from './observed.ts';
import type { Step } from './plan.ts';
import { asksMonitor, hasEvents, scheduledCondition } from './pod/pod-facts.ts';

/** Milliseconds between two tries of a login. */
export const LOGIN_PAUSE_MS = 1_000;
/** Milliseconds between two looks for Jupyter. It may still be installing or starting: large images take their time. */
export const JUPYTER_PAUSE_MS = 5_000;
/** Milliseconds between two questions to the exporter of an instance while it answers and nothing depends on it. */
const MONITOR_PAUSE_MS = 600_000;
/** A disk, and then a node, gets so many milliseconds before Events are read, and again from one look to the next. */
export const TROUBLE_MS = 15_000;
/** Milliseconds between two looks at a pod that the cache does not show. */
const HIDDEN_RETRY_MS = 5_000;

/** Stages that pass within this time are not written one by one: most starts need one write, not four. */
const QUICK_MS = 3_000;
/** A claim that is on the pod alone is in the status this long after the grant, however slow the scheduler is. */
const ON_POD_MS = 10_000;
const PASSING: ReadonlySet<InstanceState> = new Set(['scheduling', 'pulling', 'starting']);

/**
 * Milliseconds for which a status need not be written: a passing stage of a start that has just begun. Else 0.
 * @param isOnPod whether the claim is on the pod alone
 */
export function passingForMs(
  { instance, pod, now }: Observed,
  { status, isOnPod }: { status: GpuInstanceStatus; isOnPod: boolean },
): number {
  const { claim } = instance.status ?? {};
  const isPassing = status.ending === undefined && PASSING.has(instanceState({ ...instance, status }).state);
  // A status of an older version, which says nothing yet.
  const isBare = !isOnPod && instance.status?.conditions === undefined;
  if (claim === undefined || isBare || !isPassing) return 0;
  const granted = Date.parse(claim.grantedAt);
  if (!isOnPod) return Math.max(0, granted + QUICK_MS - now);
  // Until the scheduler has answered, a status would say no more than the pod does.
  const answered = Date.parse((pod && scheduledCondition(pod)?.lastTransitionTime) ?? '');
  const limits = [granted + ON_POD_MS, answered + QUICK_MS].filter(Number.isFinite);
  return Math.max(0, Math.min(...limits) - now);
}

/** Milliseconds from a question to the exporter to the next: soon where it was silent, or where its answer decides now. */
export function monitorPauseMs(monitor: MonitorState | undefined, isDue: boolean): number {
  return isDue || monitor === undefined || monitor.gpus === 'silent' ? MONITOR_RETRY_MS : MONITOR_PAUSE_MS;
}

interface LookReasons {
  step: Step;
  /** When what a place waits for is over, milliseconds since the epoch; undefined where only a change helps. */
  until?: number | undefined;
  /** When the status is worth a write; 0 when it was written. */
  writeAfterMs: number;
  /** When to try again to repair a pod or the disk. */
  repairAfterMs: number | undefined;
  /** Whether the cache does not show a pod that is there. */
  isHidden: boolean;
}

/** When to look again although nothing changes. */
export function nextLook(
  observed: Observed,
  { step, until, writeAfterMs, repairAfterMs, isHidden }: LookReasons,
): { requeueAfterMs: number } | undefined {
  const { now, pod, instance } = observed;
  const times: number[] = [];
  if (writeAfterMs > 0) times.push(now + writeAfterMs);
  if (repairAfterMs !== undefined) times.push(now + repairAfterMs);
  if (isHidden) times.push(now + HIDDEN_RETRY_MS);
  if (step.do === 'wait') times.push(step.until);
  if (until !== undefined) times.push(until);
  if (observed.jupyter !== undefined && observed.jupyter !== 'answers') times.push(now + JUPYTER_PAUSE_MS);
  if (observed.pod !== undefined && asksMonitor(observed, observed.pod)) {
    times.push(now + monitorPauseMs(observed.monitor, false));
  }
  if (instance.status?.claim !== undefined && instance.status.ending === undefined) {
    if (observed.login === 'pending') times.push(now + LOGIN_PAUSE_MS);
    if (pod !== undefined && hasEvents(observed, pod)) times.push(now + TROUBLE_MS);
    const due = deadlines(observed)[0];
    if (due !== undefined) times.push(due.at);
    const lost = nodeLostSince(observed) + NODE_GRACE_MS;
    if (pod !== undefined && lost > now && Number.isFinite(lost)) times.push(lost);
  }
  const soonest = Math.min(...times);
  return Number.isFinite(soonest) ? { requeueAfterMs: Math.max(1, soonest - now) } : undefined;
}
