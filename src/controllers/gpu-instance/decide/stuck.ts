import { findCondition } from '../../../kube/conditions.ts';
import { isNodeReady } from '../../../inventory/nodes/node-state.ts';
import { hasInOrder } from '../../../lib/in-order.ts';
import type { Node, Pod } from '../../../kube/types.ts';
import { firstRan } from '../../../resources/instances/meter.ts';
import { MAIN_CONTAINER, TOOLS_CONTAINER } from '../../../resources/pod/tools-volume.ts';
import type { Ending } from './endings.ts';
import { isImageFault } from './failures.ts';
import type { Observed } from './observed.ts';
import {
  isBeingSetUp,
  isNotCreated,
  isPodReady,
  mainStatus,
  scheduledCondition,
  containerStatus,
  sentence,
  unfinishedInit,
  type WaitingState,
  waitingState,
  words,
} from './pod/pod-facts.ts';
import { isBadImage, isPullError, pullWords } from './pod/pull-words.ts';

/** When something ends the current start, milliseconds since the epoch, and why. */
export interface Deadline {
  at: number;
  ending: Ending;
}

/** An instance whose image does not come for this long gives its GPUs back. */
const PULL_LIMIT_MS = 1_200_000;
/** An instance whose container cannot be created for this long is tried on another node. */
const CREATE_LIMIT_MS = 120_000;
/** A node gets this long for network and volumes of a pod, and for the copy of the tools. */
const SET_UP_LIMIT_MS = 300_000;
// Kubernetes takes a volume from a node that is silent after six minutes (maxWaitForUnmountDuration of the attach-detach
// controller). Until then no other node can have the disk.
const DISK_LIMIT_MS = 600_000;
/** A container that ran gets this long until the instance is ready, */
const READY_LIMIT_MS = 1_200_000;
/** and so many restarts. The kubelet makes them within some five minutes when each run fails at once. */
const MOST_RESTARTS = 6;
/** A node that is silent now and then does not prolong a limit by more than this factor. */
const LONGEST_FACTOR = 3;
// A pod that the scheduler does not report on for this long is replaced. While an API server starts and does not know
// the scheduler's roles yet, the scheduler may not bind a pod, and puts it aside for five minutes without a word.
const SILENT_LIMIT_MS = 120_000;
/** A place that the scheduler refuses for this long is given up. */
const UNSCHEDULABLE_LIMIT_MS = 15_000;
/** A volume that is made before the pod has a node takes its time, and until then the scheduler refuses the pod. */
const VOLUME_LIMIT_MS = 180_000;
/**
 * What the scheduler says while a PersistentVolumeClaim is not bound, at once or at the first consumer (kubernetes
 * pkg/scheduler/framework/plugins/volumebinding).
 */
const VOLUME_WAIT = [
  ['unbound immediate persistentvolumeclaims'],
  ['persistentvolumeclaim ', ' not found'],
  ["didn't find available persistent volumes to bind"],
  ['volume node affinity conflict'],
];
/** What it says while other pods have what the place was made of (plugins/noderesources). */
const TAKEN = /\b(Insufficient |Too many pods)/;

/** What ends a start that does not get on. There is always something until its pod is ready or its node is silent. */
export function stuck(observed: Observed): Deadline[] {
  const { pod, node } = observed;
  if (pod === undefined) return [];
  const isScheduled = scheduledCondition(pod)?.status === 'True';
  // What the kubelet of a silent node said last may be over, and Kubernetes takes the pod away.
  if (isScheduled && (node === undefined || !isNodeReady(node))) return [];
  const found =
    isScheduled && node !== undefined
      ? [refused(observed, pod, node), notReady(observed, pod, node)]
      : [notScheduled(observed, pod)];
  return found.filter((deadline) => deadline !== undefined);
}

function notProvisioned(from: number, why: string | undefined): Deadline {
  const message = `The disk was not provisioned within ${VOLUME_LIMIT_MS / 1000} seconds: ${sentence(words(why, 'nobody says why'))} If it happens again, ask the operator of the cluster to look at its StorageClass and its provisioner.`;
  return { at: from + VOLUME_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
}

function notScheduled({ instance, trouble }: Observed, pod: Pod): Deadline | undefined {
  const scheduled = scheduledCondition(pod);
  if (scheduled === undefined) {
    if (pod.spec?.nodeName !== undefined) return undefined;
    const granted = Date.parse(instance.status?.claim?.grantedAt ?? '');
    // With a volume that is made for its first pod the scheduler says nothing while it is made.
    if (trouble !== undefined) return notProvisioned(granted, trouble);
    const message = `The scheduler did not report on the pod for ${SILENT_LIMIT_MS / 1000} seconds.`;
    return { at: granted + SILENT_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
  }
  const since = Date.parse(scheduled.lastTransitionTime ?? '');
  const said = scheduled.message?.toLowerCase() ?? '';
  if (VOLUME_WAIT.some((parts) => hasInOrder(said, parts))) return notProvisioned(since, trouble ?? scheduled.message);
  const why = TAKEN.test(scheduled.message ?? '') ? 'Another pod took the place' : 'The scheduler refuses the place';
  const message = `${why}: ${words(scheduled.message, 'it does not say why')}`;
  return { at: since + UNSCHEDULABLE_LIMIT_MS, ending: { reason: 'PlaceLost', message } };
}

/**
 * The end of a limit that counts from some moment, and not while the node was silent. A start that was ready once has as
 * long as it takes for that; any other ends, however often its node comes and goes.
 */
function limitFrom(from: number, limitMs: number, { instance }: Observed, node: Node): number {
  const answers = Date.parse(findCondition(node.status?.conditions, 'Ready')?.lastTransitionTime ?? '');
  const due = Math.max(from, Number.isFinite(answers) ? answers : from) + limitMs;
  const isCapped = instance.status?.stages?.ready === undefined;
  return isCapped ? Math.min(due, from + LONGEST_FACTOR * limitMs) : due;
}

function scheduledAt({ instance }: Observed, pod: Pod): number {
  const granted = instance.status?.claim?.grantedAt ?? '';
  return Date.parse(scheduledCondition(pod)?.lastTransitionTime ?? granted);
}

/** What the kubelet says that it cannot do. */
function refused(observed: Observed, pod: Pod, node: Node): Deadline | undefined {
  const waiting = waitingState(pod);
  if (waiting === undefined) return undefined;
  // Of a container that starts again its kubelet pulls the image again: only that counts.
  const last = Date.parse(containerStatus(pod, waiting.container)?.lastState?.terminated?.finishedAt ?? '');
  const from = Number.isFinite(last) ? Math.max(scheduledAt(observed, pod), last) : scheduledAt(observed, pod);
  const due = (limitMs: number): number => limitFrom(from, limitMs, observed, node);
  const isPull = isBadImage(waiting.reason) || isPullError(waiting.reason);
  const said = isPull ? pullWords(pod, waiting) : `${waiting.reason}: ${words(waiting.message, 'no more is known')}`;
  if (waiting.container !== MAIN_CONTAINER) return refusedBesideMain(waiting, said, due);
  if (isBadImage(waiting.reason)) return { at: 0, ending: { reason: 'InvalidImage', message: said } };
  if (isPull) return { at: due(PULL_LIMIT_MS), ending: { reason: 'ImagePullFailed', message: said } };
  if (isNotCreated(waiting.reason)) {
    const reason = isImageFault(waiting) ? 'ContainerInvalid' : 'ContainerNotCreated';
    return { at: due(CREATE_LIMIT_MS), ending: { reason, message: said } };
  }
  return undefined;
}

// A fault of the operator's image, or of a container that a webhook added, is no fault of the tenant, whose instance is
// not switched off for it, nor of the node.
function besideMain(container: string, said: string): Ending {
  const message = `Container ${container}, which is not of the instance's own, cannot start. The operator of the cluster must see to it. ${said}`;
  return { reason: 'PodFailed', message };
}

function refusedBesideMain(
  { reason, container }: WaitingState,
  said: string,
  due: (limitMs: number) => number,
): Deadline | undefined {
  const ending = besideMain(container, said);
  if (isBadImage(reason)) return { at: 0, ending };
  if (isPullError(reason)) return { at: due(PULL_LIMIT_MS), ending };
  return isNotCreated(reason) ? { at: due(CREATE_LIMIT_MS), ending } : undefined;
}

function minutes(ms: number): string {
  return `${ms / 60_000} minutes`;
}

/** What ends a start that was never ready although nobody refuses anything. */
function notReady(observed: Observed, pod: Pod, node: Node): Deadline | undefined {
  const { stages } = observed.instance.status ?? {};
  // A pod that is ready has its minute for a login, also after an outage of the controller that was longer than a limit.
  if (stages?.ready !== undefined || isPodReady(pod)) return undefined;
  const began = firstRan(stages);
  if (began !== undefined) return notReadyAfterRun(pod, limitFrom(began, READY_LIMIT_MS, observed, node));
  // It began to run while no controller looked. This look writes down when.
  if (mainStatus(pod)?.state?.running !== undefined) return undefined;
  return notSetUp(observed, pod, node) ?? notStarted(observed, pod, node);
}

/** Network, volumes and init containers come before the image. */
function notSetUp(observed: Observed, pod: Pod, node: Node): Deadline | undefined {
  const from = scheduledAt(observed, pod);
  if (isBeingSetUp(pod)) {
    const limitMs = observed.instance.status?.diskPersistent === true ? DISK_LIMIT_MS : SET_UP_LIMIT_MS;
    const why = `Node ${node.metadata.name} did not set up the pod within ${minutes(limitMs)}: its network, its volumes or its kubelet are at fault.`;
    const said = observed.trouble === undefined ? 'The events of the pod say more.' : words(observed.trouble, '');
    const message = `${why} ${said}`;
    return { at: limitFrom(from, limitMs, observed, node), ending: { reason: 'ContainerNotCreated', message } };
  }
  const init = unfinishedInit(pod);
  if (init === undefined) return undefined;
  const { name, state } = init;
  if (state?.running !== undefined) {
    const runs = Math.max(from, Date.parse(state.running.startedAt ?? '') || 0);
    const at = Math.min(limitFrom(runs, SET_UP_LIMIT_MS, observed, node), from + PULL_LIMIT_MS + SET_UP_LIMIT_MS);
    const said = `It has not ended after ${minutes(SET_UP_LIMIT_MS)}.`;
    // The tools are small files. A node that cannot copy them is at fault.
    const message = `The init container ${name} does not end on node ${node.metadata.name}. ${said}`;
    return {
      at,
      ending: name === TOOLS_CONTAINER ? { reason: 'ContainerNotCreated', message } : besideMain(name, said),
    };
  }
  const fails = state?.terminated !== undefined || state?.waiting?.reason === 'CrashLoopBackOff';
  const limitMs = fails ? SET_UP_LIMIT_MS : PULL_LIMIT_MS;
  const said = fails ? 'It fails again and again.' : `Its image did not come within ${minutes(limitMs)}.`;
  return { at: limitFrom(from, limitMs, observed, node), ending: besideMain(name, said) };
}

/** The container has not run yet: its image is on the way, or it cannot be started. */
function notStarted(observed: Observed, pod: Pod, node: Node): Deadline {
  const main = mainStatus(pod);
  const due = limitFrom(scheduledAt(observed, pod), PULL_LIMIT_MS, observed, node);
  if (main?.state?.terminated !== undefined || main?.lastState?.terminated !== undefined) {
    return notReadyAfterRun(pod, due);
  }
  const image = pod.spec?.containers.find(({ name }) => name === MAIN_CONTAINER)?.image ?? 'The image';
  const message = `${image} did not come to node ${node.metadata.name} within ${minutes(PULL_LIMIT_MS)}, and its registry reports no error. Use a smaller image or a faster registry, or ask the operator to bring the image to the nodes before.`;
  return { at: due, ending: { reason: 'ImagePullFailed', message } };
}

/** The image is there. The program in it does not go on running, or another container of the pod is not ready. */
function notReadyAfterRun(pod: Pod, due: number): Deadline {
  const main = mainStatus(pod);
  const { restartCount = 0, state, lastState } = main ?? {};
  if (main?.ready === true) {
    const other = pod.status?.containerStatuses?.find(({ ready }) => !ready)?.name;
    const said = `It was not ready within ${minutes(READY_LIMIT_MS)}.`;
    const message = `A readiness gate of the pod was not met within ${minutes(READY_LIMIT_MS)}. The operator of the cluster must see to it.`;
    return { at: due, ending: other === undefined ? { reason: 'PodFailed', message } : besideMain(other, said) };
  }
  const exit = (state?.terminated ?? lastState?.terminated)?.exitCode;
  const code = exit === undefined ? '' : ` Its last exit code was ${exit}.`;
  const message = `The container ended ${restartCount} times before the instance was ready.${code} See that the image, its command and onStart keep running.`;
  return { at: restartCount >= MOST_RESTARTS ? 0 : due, ending: { reason: 'ContainerFailed', message } };
}
