import { findCondition } from '../../../kube/conditions.ts';
import { isNodeReady } from '../../../inventory/nodes/node-state.ts';
import { hasReached } from '../../../kube/watch/resource-version.ts';
import { silentMs } from '../../../ledger/silence.ts';
import { gpusAre } from '../../../resources/instances/gpu-health.ts';
import { LAST_ACTIVITY } from '../../../resources/instances/gpu-instance.ts';
import { firstRan, meterBegan } from '../../../resources/instances/meter.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { gpuHealth } from './gpu-health.ts';
import { limitSince } from './limits.ts';
import { answersSince } from './silences.ts';
import type { Observed } from './observed.ts';
import { isMonitored, isPodReady, mainStatus, podCondition } from './pod/pod-facts.ts';
import { type Deadline, stuck } from './stuck.ts';

/** An instance shows NodeLost when its node is not ready for this long. */
export const NODE_GRACE_MS = 40_000;
/**
 * A GPU that is unhealthy for this long counts as broken. Some device plugins take a GPU back that recovers, and look at
 * it every 30 seconds; NVIDIA's takes none back before it is restarted.
 */
export const GPU_GRACE_MS = 60_000;

/** A maxDuration that was set while the instance ran ends it no sooner: it may be over already, and a slip. */
const LIMIT_GRACE_MS = 60_000;

/** Whether the node can say what its instances do. Nothing ends for its time while it cannot. */
function isNodeHeard(observed: Observed): boolean {
  return nodeLostSince(observed) === Number.POSITIVE_INFINITY;
}

function lifetime(observed: Observed): Deadline | undefined {
  const { instance, now } = observed;
  const { maxDuration } = instance.spec;
  const { silences } = instance.status ?? {};
  const began = meterBegan(instance.status);
  if (maxDuration === undefined || began === undefined || !isNodeHeard(observed)) return undefined;
  const since = limitSince(instance, 'maxDuration', now);
  const due = began + parseDuration(maxDuration) + silentMs(silences, began, now);
  return {
    at: since > began ? Math.max(due, since + LIMIT_GRACE_MS) : due,
    ending: { reason: 'Expired', message: `maxDuration of ${maxDuration} is over.` },
  };
}

/** Milliseconds between two questions to an exporter that did not answer, or whose answer decides something now. */
export const MONITOR_RETRY_MS = 5_000;

/** An exporter that is silent for so long after the time of its instance was over has nothing to say. */
const MONITOR_PATIENCE_MS = 300_000;

/**
 * With the exporter, a busy GPU counts as use. On GPUs that instances share the others may be the busy ones. The exporter
 * is in the container: when that began anew, nobody knows any more what it saw before.
 */
function lastBusy(observed: Observed): number {
  const { instance, monitor, pod, now } = observed;
  if (instance.status?.claim?.isolation !== 'whole') return 0;
  const runs = pod && isMonitored(observed, pod) ? mainStatus(pod)?.state?.running : undefined;
  return Math.max(monitor?.busyAt ?? 0, Math.min(now, Date.parse(runs?.startedAt ?? '') || 0));
}

/** When the instance has been idle for long enough, as far as is known; milliseconds since the epoch. */
function idleAt(observed: Observed): number | undefined {
  const { instance, node, now } = observed;
  const { idleTimeout } = instance.spec;
  const began = firstRan(instance.status?.stages);
  if (idleTimeout === undefined || began === undefined || !isNodeHeard(observed)) return undefined;
  const used = Date.parse(instance.metadata.annotations?.[LAST_ACTIVITY] ?? '');
  const last = Math.max(
    began,
    Number.isFinite(used) ? used : 0,
    lastBusy(observed),
    // Nobody could use it before.
    answersSince(instance.status, node, now),
    observed.sessions?.since ?? 0,
    limitSince(instance, 'idleTimeout', now),
  );
  return last + parseDuration(idleTimeout);
}

/**
 * Whether the time is over and the exporter in the pod was not asked since. It has the last word. Its silence is an answer
 * only after a while: the way to it may be broken, or its container may be about to run again.
 */
export function isIdleOpen(observed: Observed): boolean {
  const { pod, monitor, now } = observed;
  const at = idleAt(observed);
  if (at === undefined || now < at || pod === undefined || !isMonitored(observed, pod)) return false;
  if (!isPodReady(pod)) {
    const since = Date.parse(podCondition(pod, 'Ready')?.lastTransitionTime ?? '') || 0;
    return now < Math.max(at, since) + MONITOR_PATIENCE_MS;
  }
  if (monitor?.gpus === 'silent') return monitor.askedAt < at + MONITOR_PATIENCE_MS;
  return monitor === undefined || monitor.askedAt < at;
}

/** Whether a replica that serves instances may know of a use that is not in this instance yet. */
export function lacksReport({ instance, sessions }: Observed, at: number): boolean {
  if (sessions === undefined) return false;
  const { resourceVersion = '' } = instance.metadata;
  // A replica whose cache is behind may not know that the use of this instance is asked for.
  return sessions.until < at || !sessions.versions.every((version) => hasReached(version, resourceVersion));
}

function idle(observed: Observed): Deadline | undefined {
  const { instance, monitor, now } = observed;
  const at = idleAt(observed);
  if (at === undefined) return undefined;
  const also = monitor?.gpus === 'measured' ? ', and no GPU was busy' : '';
  const message = `No session was open for ${instance.spec.idleTimeout}${also}.`;
  const isOpen = isIdleOpen(observed) || (now >= at && lacksReport(observed, at));
  return { at: isOpen ? now + MONITOR_RETRY_MS : at, ending: { reason: 'Idle', message } };
}

function gpuFailure(observed: Observed): Deadline | undefined {
  // What the kubelet of a node that does not answer said last may be over. And the pod would not end.
  if (observed.instance.spec.onGPUFailure !== 'Restart' || !isNodeHeard(observed)) return undefined;
  const { unhealthy = [] } = gpuHealth(observed) ?? {};
  if (unhealthy.length === 0) return undefined;
  const since = Math.min(...unhealthy.map((gpu) => Date.parse(gpu.since)));
  const message = `${gpusAre(unhealthy, 'was')} unhealthy for ${GPU_GRACE_MS / 1000} seconds, for which the instance is to start again.`;
  return { at: since + GPU_GRACE_MS, ending: { reason: 'GPUUnhealthy', message } };
}

/** What will end the current start, the earliest first; milliseconds since the epoch. */
export function deadlines(observed: Observed): Deadline[] {
  return [lifetime(observed), idle(observed), gpuFailure(observed), ...stuck(observed)]
    .filter((deadline) => deadline !== undefined)
    .toSorted((a, b) => a.at - b.at);
}

/** Since when the node is not ready, milliseconds since the epoch; Infinity while it is ready, 0 when it is gone. */
export function nodeLostSince({ node }: Pick<Observed, 'node'>): number {
  if (node === undefined) return 0;
  if (isNodeReady(node)) return Number.POSITIVE_INFINITY;
  const ready = findCondition(node.status?.conditions, 'Ready');
  const since = Date.parse(ready?.lastTransitionTime ?? '');
  return Number.isFinite(since) ? since : 0;
}
