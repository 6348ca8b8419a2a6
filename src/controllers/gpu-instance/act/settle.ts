import type { GpuInstanceStatus } from '../../../resources/gpu-instance.ts';
import { READY_REASONS } from '../../../resources/instance-state.ts';
import type { Result } from '../../../runtime/controller.ts';
import type { Run } from './run.ts';
import { JUPYTER_PAUSE_MS, LOGIN_PAUSE_MS } from './login.ts';
import type { Observed } from '../decide/observed.ts';
import type { Step } from '../decide/plan.ts';
import { deadlines, NODE_GRACE_MS, nodeLostSince } from '../decide/deadlines.ts';
import { isReadyReason, writeStatus } from './writes.ts';

/** Stages that pass within this time are not written one by one: most starts need one write, not four. */
const QUICK_MS = 3_000;
/** How often to look after a pod that is there and that the cache does not show. */
const HIDDEN_RETRY_MS = 5_000;

function isPassing(status: GpuInstanceStatus): boolean {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || !isReadyReason(ready.reason)) return false;
  const { state } = READY_REASONS[ready.reason];
  return status.ending === undefined && (state === 'scheduling' || state === 'pulling' || state === 'starting');
}

/**
 * Writes what is seen, unless it is a passing stage of a start that has just begun: then it tells how many milliseconds
 * to wait before it is worth a write.
 */
export async function settleStatus(
  run: Run,
  observed: Observed,
  status: GpuInstanceStatus,
): Promise<number | undefined> {
  const { instance, now } = observed;
  const { claim } = instance.status ?? {};
  const left = claim === undefined ? 0 : Date.parse(claim.grantedAt) + QUICK_MS - now;
  if (left > 0 && isPassing(status) && instance.status?.conditions !== undefined) return left;
  await writeStatus(run, instance, status);
  return undefined;
}

/** When to look again although nothing changes. */
export function nextLook(
  observed: Observed,
  { step, told, isHidden }: { step: Step; told: number | undefined; isHidden: boolean },
): Result {
  const { now, pod, instance } = observed;
  const times: number[] = [];
  if (told !== undefined) times.push(now + told);
  if (isHidden) times.push(now + HIDDEN_RETRY_MS);
  if (step.do === 'wait') times.push(step.until);
  if (observed.login === 'pending') times.push(now + LOGIN_PAUSE_MS);
  if (observed.jupyter !== undefined && observed.jupyter !== 'answers') times.push(now + JUPYTER_PAUSE_MS);
  if (instance.status?.claim !== undefined && instance.status.ending === undefined) {
    const due = deadlines(observed)[0];
    if (due !== undefined) times.push(due.at);
    const lost = nodeLostSince(observed) + NODE_GRACE_MS;
    if (pod !== undefined && lost > now && Number.isFinite(lost)) times.push(lost);
  }
  const soonest = Math.min(...times);
  return Number.isFinite(soonest) ? { requeueAfterMs: Math.max(1, soonest - now) } : undefined;
}
