import type { Ending } from './endings.ts';
import { findCondition } from '../../../kube/conditions.ts';
import { isNodeReady } from '../../../inventory/nodes/node-state.ts';
import { gpusAre } from '../../../resources/instances/gpu-health.ts';
import { LAST_ACTIVITY } from '../../../resources/instances/gpu-instance.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { MAIN_CONTAINER } from '../../../resources/pod/tools-volume.ts';
import { isImageFault } from './failures.ts';
import { gpuHealth } from './gpu-health.ts';
import type { Observed } from './observed.ts';
import {
  asksMonitor,
  isBadImage,
  isNotCreated,
  isPullError,
  scheduledCondition,
  pullWords,
  waitingState,
  words,
} from './pod/pod-facts.ts';

/** An instance shows NodeLost when its node is not ready for this long. */
export const NODE_GRACE_MS = 40_000;
/**
 * A GPU that is unhealthy for this long counts as broken. Some device plugins take a GPU back that recovers, and look at
 * it every 30 seconds; NVIDIA's takes none back before it is restarted.
 */
export const GPU_GRACE_MS = 60_000;
/** An instance whose image cannot be fetched for this long gives its GPUs back. */
const PULL_LIMIT_MS = 1_200_000;
/** An instance whose container cannot be created for this long is tried on another node. */
const CREATE_LIMIT_MS = 120_000;
// A pod that the scheduler does not report on for this long is replaced. While an API server starts and does not know
// the scheduler's roles yet, the scheduler may not bind a pod, and puts it aside for five minutes without a word.
const SILENT_LIMIT_MS = 120_000;
/** A place that the scheduler refuses for this long was taken by another pod. */
const UNSCHEDULABLE_LIMIT_MS = 15_000;
/** A volume that is made before the pod has a node takes its time, and until then the scheduler refuses the pod. */
const VOLUME_LIMIT_MS = 180_000;
/** What the scheduler says while a PersistentVolumeClaim is not bound (kubernetes pkg/scheduler/framework/plugins). */
const VOLUME_WAIT = /unbound immediate PersistentVolumeClaims|persistentvolumeclaim .* not found/i;

interface Deadline {
  at: number;
  ending: Ending;
}

function lifetime({ instance }: Observed): Deadline | undefined {
  const { maxDuration } = instance.spec;
  const ready = instance.status?.stages?.ready;
  if (maxDuration === undefined || ready === undefined) return undefined;
  return {
    at: Date.parse(ready) + parseDuration(maxDuration),
    ending: { reason: 'Expired', message: `maxDuration of ${maxDuration} is over.` },
  };
}

/** Milliseconds between two questions to an exporter that did not answer, or whose answer decides something now. */
export const MONITOR_RETRY_MS = 5_000;

/** With the exporter, a busy GPU counts as use. On GPUs that instances share the others may be the busy ones. */
function lastBusy({ instance, monitor }: Observed): number {
  return instance.status?.claim?.isolation === 'whole' ? (monitor?.busyAt ?? 0) : 0;
}

/** When the instance has been idle for long enough, as far as is known; milliseconds since the epoch. */
function idleAt(observed: Observed): number | undefined {
  const { idleTimeout } = observed.instance.spec;
  const ready = observed.instance.status?.stages?.ready;
  if (idleTimeout === undefined || ready === undefined) return undefined;
  const last = Date.parse(observed.instance.metadata.annotations?.[LAST_ACTIVITY] ?? '');
  const used = Number.isFinite(last) ? Math.max(last, Date.parse(ready)) : Date.parse(ready);
  return Math.max(used, lastBusy(observed)) + parseDuration(idleTimeout);
}

/**
 * Whether the time is over and the exporter in the pod was not asked since. It has the last word; its silence is an
 * answer too.
 */
export function isIdleOpen(observed: Observed): boolean {
  const { pod, monitor, now } = observed;
  const at = idleAt(observed);
  if (at === undefined || now < at || pod === undefined || !asksMonitor(observed, pod)) return false;
  return monitor === undefined || monitor.askedAt < at;
}

function idle(observed: Observed): Deadline | undefined {
  const { instance, monitor, now } = observed;
  const at = idleAt(observed);
  if (at === undefined) return undefined;
  const also = monitor?.gpus === 'measured' ? ', and no GPU was busy' : '';
  const message = `No session was open for ${instance.spec.idleTimeout}${also}.`;
  return { at: isIdleOpen(observed) ? now + MONITOR_RETRY_MS : at, ending: { reason: 'Idle', message } };
}

function gpuFailure(observed: Observed): Deadline | undefined {
  // What the kubelet of a node that does not answer said last may be over. And the pod would not end.
  const isCurrent = nodeLostSince(observed) === Number.POSITIVE_INFINITY;
  if (observed.instance.spec.onGPUFailure !== 'Restart' || !isCurrent) return undefined;
  const { unhealthy = [] } = gpuHealth(observed) ?? {};
  if (unhealthy.length === 0) return undefined;
  const since = Math.min(...unhealthy.map((gpu) => Date.parse(gpu.since)));
  const message = `${gpusAre(unhealthy, 'was')} unhealthy for ${GPU_GRACE_MS / 1000} seconds, and spec.onGPUFailure is Restart.`;
  return { at: since + GPU_GRACE_MS, ending: { reason: 'GPUUnhealthy', message } };
}

function stuck({ instance, pod }: Observed): Deadline | undefined {
  if (pod === undefined) return undefined;
  const scheduled = scheduledCondition(pod);
  if (scheduled === undefined) {
    if (pod.spec?.nodeName !== undefined) return undefined;
    const message = `The scheduler did not report on the pod for ${SILENT_LIMIT_MS / 1000} seconds.`;
    const granted = Date.parse(instance.status?.claim?.grantedAt ?? '');
    return { at: granted + SILENT_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
  }
  const since = Date.parse(scheduled.lastTransitionTime ?? '');
  if (scheduled.status !== 'True') {
    if (VOLUME_WAIT.test(scheduled.message ?? '')) {
      const message = `The disk was not provisioned within ${VOLUME_LIMIT_MS / 1000} seconds: ${words(scheduled.message, '')}`;
      return { at: since + VOLUME_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
    }
    const message = `Another pod took the place: ${words(scheduled.message, 'the scheduler refuses the pod')}`;
    return { at: since + UNSCHEDULABLE_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
  }
  const waiting = waitingState(pod);
  if (waiting === undefined) return undefined;
  const said = `${waiting.reason}: ${words(waiting.message, 'no more is known')}`;
  if (waiting.container !== MAIN_CONTAINER) return stuckBesideMain(waiting, said, since);
  if (isBadImage(waiting.reason)) return { at: 0, ending: { reason: 'InvalidImage', message: said } };
  if (isPullError(waiting.reason)) {
    const message = `${waiting.reason}: ${pullWords(pod, waiting.message)}`;
    return { at: since + PULL_LIMIT_MS, ending: { reason: 'ImagePullFailed', message } };
  }
  if (isNotCreated(waiting.reason)) {
    const reason = isImageFault(waiting) ? 'ContainerInvalid' : 'ContainerNotCreated';
    return { at: since + CREATE_LIMIT_MS, ending: { reason, message: said } };
  }
  return undefined;
}

// A fault of the operator's image, or of a container that a webhook added, is no fault of the tenant, whose instance is
// not switched off for it, nor of the node.
function stuckBesideMain(
  { reason, container }: { reason: string; container: string },
  said: string,
  since: number,
): Deadline | undefined {
  const message = `Container ${container}, which is not of the instance's own, cannot start. The operator of the cluster must see to it. ${said}`;
  const ending: Ending = { reason: 'PodFailed', message };
  if (isBadImage(reason)) return { at: 0, ending };
  if (isPullError(reason)) return { at: since + PULL_LIMIT_MS, ending };
  return isNotCreated(reason) ? { at: since + CREATE_LIMIT_MS, ending } : undefined;
}

/** What will end the current start, the earliest first; milliseconds since the epoch. */
export function deadlines(observed: Observed): Deadline[] {
  return [lifetime(observed), idle(observed), gpuFailure(observed), stuck(observed)]
    .filter((deadline) => deadline !== undefined)
    .toSorted((a, b) => a.at - b.at);
}

/** Since when the node does not answer, milliseconds since the epoch; Infinity while it does, 0 when it is gone. */
export function nodeLostSince({ node }: Pick<Observed, 'node'>): number {
  if (node === undefined) return 0;
  if (isNodeReady(node)) return Number.POSITIVE_INFINITY;
  const ready = findCondition(node.status?.conditions, 'Ready');
  const since = Date.parse(ready?.lastTransitionTime ?? '');
  return Number.isFinite(since) ? since : 0;
}
