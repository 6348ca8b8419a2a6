import type { Ending } from './endings.ts';
import { findCondition } from '../../../kube/conditions.ts';
import { isNodeReady } from '../../../inventory/nodes/node-state.ts';
import { LAST_ACTIVITY } from '../../../resources/gpu-instance.ts';
import { parseDuration } from '../../../resources/schema.ts';
import { isImageFault } from './failures.ts';
import type { Observed } from './observed.ts';
import { isBadImage, isNotCreated, isPullError, podCondition, waitingState, words } from './pod/pod-facts.ts';

/** Kubernetes itself waits this long before it takes pods off a silent node. */
export const NODE_GRACE_MS = 40_000;
/** An image that cannot be fetched for this long frees its GPUs. */
const PULL_LIMIT_MS = 1_200_000;
/** A container that cannot be made for this long is tried on another node. */
const CREATE_LIMIT_MS = 120_000;
/**
 * A pod that the scheduler says nothing about for this long is made anew: one that it may not bind while an API server
 * starts (its roles are not known yet) it puts aside for five minutes without a word.
 */
const SILENT_LIMIT_MS = 120_000;
/** A place that the scheduler refuses for this long was taken by somebody else. */
const UNSCHEDULABLE_LIMIT_MS = 15_000;

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

function idle({ instance }: Observed): Deadline | undefined {
  const { idleTimeout } = instance.spec;
  const ready = instance.status?.stages?.ready;
  if (idleTimeout === undefined || ready === undefined) return undefined;
  const last = Date.parse(instance.metadata.annotations?.[LAST_ACTIVITY] ?? '');
  const since = Number.isFinite(last) ? Math.max(last, Date.parse(ready)) : Date.parse(ready);
  return {
    at: since + parseDuration(idleTimeout),
    ending: { reason: 'Idle', message: `No session was open for ${idleTimeout}.` },
  };
}

function stuck({ instance, pod }: Observed): Deadline | undefined {
  if (pod === undefined) return undefined;
  const scheduled = podCondition(pod, 'PodScheduled');
  if (scheduled === undefined) {
    if (pod.spec?.nodeName !== undefined) return undefined;
    const message = `The scheduler said nothing about the pod for ${SILENT_LIMIT_MS / 1000} seconds.`;
    const granted = Date.parse(instance.status?.claim?.grantedAt ?? '');
    return { at: granted + SILENT_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
  }
  const since = Date.parse(scheduled.lastTransitionTime ?? '');
  if (scheduled.status !== 'True') {
    const message = `The place was taken meanwhile: ${words(scheduled.message, 'the scheduler refuses the pod')}`;
    return { at: since + UNSCHEDULABLE_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
  }
  const waiting = waitingState(pod);
  if (waiting === undefined) return undefined;
  const said = `${waiting.reason}: ${words(waiting.message, 'no more is known')}`;
  if (isBadImage(waiting.reason)) return { at: 0, ending: { reason: 'InvalidImage', message: said } };
  if (isPullError(waiting.reason)) {
    return { at: since + PULL_LIMIT_MS, ending: { reason: 'ImagePullFailed', message: said } };
  }
  if (isNotCreated(waiting.reason)) {
    const reason = isImageFault(waiting) ? 'ContainerInvalid' : 'ContainerNotCreated';
    return { at: since + CREATE_LIMIT_MS, ending: { reason, message: said } };
  }
  return undefined;
}

/** What ends the current start by time, the earliest first; milliseconds since the epoch. */
export function deadlines(observed: Observed): Deadline[] {
  return [lifetime(observed), idle(observed), stuck(observed)]
    .filter((deadline) => deadline !== undefined)
    .toSorted((a, b) => a.at - b.at);
}

/** Since when the node of a start does not answer; Infinity while it does, 0 when it is gone. */
export function nodeLostSince({ node }: Pick<Observed, 'node'>): number {
  if (node === undefined) return 0;
  if (isNodeReady(node)) return Number.POSITIVE_INFINITY;
  const ready = findCondition(node.status?.conditions, 'Ready');
  const since = Date.parse(ready?.lastTransitionTime ?? '');
  return Number.isFinite(since) ? since : 0;
}
