import { hasEnded } from '../../../../kube/pod-phase.ts';
import { isBeingEmptied } from '../../../../inventory/nodes/node-state.ts';
import { hasStopped } from '../../../../inventory/nodes/pod-end.ts';
import { findCondition } from '../../../../kube/conditions.ts';
import type { Node, Pod } from '../../../../kube/types.ts';
import { hasMonitor } from '../../../../resources/pod/monitor.ts';
import { MAIN_CONTAINER } from '../../../../resources/pod/tools-volume.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';
import { firstRan } from '../../../../resources/instances/meter.ts';
import { instanceUidOf } from '../../../../resources/pod/owner.ts';
import type { Ending } from '../endings.ts';
import type { Observed } from '../observed.ts';

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

/** Messages of the kubelet and the API server may be long. This much of them goes into a status. */
const MAX_WORDS = 512;

export function words(text: string | undefined, fallback: string): string {
  const trimmed = (text ?? '').trim();
  return trimmed === '' ? fallback : trimmed.slice(0, MAX_WORDS);
}

/** A message of another program, with a full stop: another sentence may follow. */
export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export function podCondition(pod: Pod, type: string) {
  return findCondition(pod.status?.conditions, type);
}

/**
 * The condition PodScheduled. A pod that has a node is scheduled, whatever the condition says: a scheduler that got no
 * answer to its binding tries again, is told that the pod is assigned already, and writes SchedulerError over it.
 */
export function scheduledCondition(pod: Pod): ReturnType<typeof podCondition> {
  const condition = podCondition(pod, 'PodScheduled');
  if (condition === undefined || condition.status === 'True' || !pod.spec?.nodeName) return condition;
  const { type, lastTransitionTime } = condition;
  return { type, status: 'True', ...(lastTransitionTime !== undefined && { lastTransitionTime }) };
}

export function mainStatus(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === MAIN_CONTAINER);
}

/** Whether the log of a pod goes on or has its end; undefined when its container has not started. */
export function logOf(pod: Pod): 'running' | 'ended' | undefined {
  const { state, lastState } = mainStatus(pod) ?? {};
  if (state?.running !== undefined) return 'running';
  return state?.terminated !== undefined || lastState?.terminated !== undefined ? 'ended' : undefined;
}

/** The status of a container of any kind. */
export function containerStatus(pod: Pod, container: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find(({ name }) => name === container);
}

/**
 * The first init container that others wait for. One that restarts always is a sidecar: it runs beside the others, which
 * go on when it has started.
 */
export function unfinishedInit({ spec, status }: Pod): ContainerStatus | undefined {
  const always = spec?.initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always') ?? [];
  const sidecars = new Set(always.map(({ name }) => name));
  return status?.initContainerStatuses?.find(({ name, state, started }) =>
    sidecars.has(name) ? started !== true : state?.terminated?.exitCode !== 0,
  );
}

/** Whether the exporter of `installMonitoring` measures what this pod does while its container runs. */
export function isMonitored({ instance }: Pick<Observed, 'instance'>, pod: Pod): boolean {
  const { status } = instance;
  return hasMonitor(pod) && status?.claim?.simulated !== true && status?.ending === undefined;
}

/** Whether that exporter should answer now. */
export function asksMonitor(observed: Pick<Observed, 'instance'>, pod: Pod): boolean {
  return isMonitored(observed, pod) && isPodReady(pod);
}

export function isPodReady(pod: Pod): boolean {
  return podCondition(pod, 'Ready')?.status === 'True';
}

/**
 * Whether a pod has its node, and network and volumes are not there yet. Kubelets before Kubernetes 1.29 and simulated
 * nodes do not know the condition.
 */
export function isBeingSetUp(pod: Pod): boolean {
  if (scheduledCondition(pod)?.status !== 'True' || hasEnded(pod) || isPodReady(pod)) return false;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const condition = podCondition(pod, 'PodReadyToStartContainers');
  if (condition !== undefined) return condition.status !== 'True';
  return containerStatuses.length === 0 && initContainerStatuses.length === 0;
}

/** What the controller manager writes to a claim that has its volume (kubernetes pkg/controller/volume/persistentvolume). */
const BOUND = 'pv.kubernetes.io/bind-completed';

/** Whether a pod waits for what Events tell of: that its disk is provisioned, or that its node sets it up. */
export function hasEvents({ instance, disk }: Pick<Observed, 'instance' | 'disk'>, pod: Pod): boolean {
  if (isBeingSetUp(pod)) return true;
  if (scheduledCondition(pod)?.status === 'True' || hasEnded(pod)) return false;
  return instance.status?.diskPersistent === true && disk?.metadata.annotations?.[BOUND] === undefined;
}

export interface WaitingState {
  reason: string;
  message: string;
  /** Name of the container. Only `main` is the tenant's: the others are Berth's, or come from a webhook. */
  container: string;
}

/** Why the first waiting container waits: init containers first, then the others. */
export function waitingState(pod: Pod): WaitingState | undefined {
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  const first = statuses.find(({ state }) => state?.waiting?.reason !== undefined);
  const { reason = '', message = '' } = first?.state?.waiting ?? {};
  return first && { reason, message, container: first.name };
}

// Reasons of the kubelet's admission handlers (kubernetes pkg/kubelet/lifecycle/predicate.go and
// pkg/kubelet/cm/topologymanager): the node refused the pod although the scheduler bound it.
const ADMISSION =
  /^(UnexpectedAdmissionError|TopologyAffinityError|NodeAffinity|NodeUnschedulable|OutOf\S+|Admission\w*)$/;

/**
 * When the main container ran for the first time, as far as its kubelet still says; milliseconds since the epoch. A
 * container that could not be started has the epoch in its place.
 */
export function firstRunOf(pod: Pod): number | undefined {
  const { state, lastState } = mainStatus(pod) ?? {};
  const runs = [lastState?.terminated, state?.running, state?.terminated];
  const times = runs.map((run) => Date.parse(run?.startedAt ?? '')).filter((time) => time > 0);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** When the program of a pod ran, by the clock of its node and never after `now`; undefined when it did not run. */
export function ranOf(pod: Pod, now: number): { from: number; to: number } | undefined {
  const { startedAt = '', finishedAt = '' } = mainStatus(pod)?.state?.terminated ?? {};
  const [from, to] = [Date.parse(startedAt), Date.parse(finishedAt)];
  // A container that could not be started has the epoch here.
  if (!(from > 0) || !(to >= from)) return undefined;
  return { from: Math.min(from, now), to: Math.min(to, now) };
}

/**
 * Whether a pod is over: it has ended, or its program has, which nothing starts again. A container that a webhook added
 * may go on for ever.
 */
export function isOver({ status }: Pick<GpuInstance, 'status'>, pod: Pod): boolean {
  if (hasEnded(pod)) return true;
  const isDeleted = pod.metadata.deletionTimestamp !== undefined;
  return status?.runtype === 'args' && !isDeleted && mainStatus(pod)?.state?.terminated !== undefined;
}

/** Less than this apart, two times may be of one moment: times on pods are whole seconds. */
const SECOND_MS = 1_000;

/**
 * How far the clock of the node is behind, as far as the start shows it: its container cannot have run before it had its
 * place. Only of a container that ran once: of another the kubelet does not say any more when it ran first.
 */
export function behindMs({ status }: Pick<GpuInstance, 'status'>, pod: Pod): number {
  const began = Math.max(firstRan(status?.stages) ?? 0, Date.parse(status?.claim?.grantedAt ?? '') || 0);
  const behind = began - (firstRunOf(pod) ?? began);
  return mainStatus(pod)?.restartCount === 0 && behind >= SECOND_MS ? behind : 0;
}

/** When the program of a pod ended: its clock may be behind, and how long it ran is true all the same. */
export function endOf({ instance, now }: Pick<Observed, 'instance' | 'now'>, pod: Pod): { at?: number } {
  const ran = ranOf(pod, now);
  return ran === undefined ? {} : { at: Math.min(now, ran.to + behindMs(instance, pod)) };
}

/** Why and when a pod ended by itself. */
export function endingOfPod(observed: Pick<Observed, 'instance' | 'now'>, pod: Pod): Ending {
  return { ...reasonOfEnd(pod), ...endOf(observed, pod) };
}

function disruptionOf(pod: Pod) {
  return podCondition(pod, 'DisruptionTarget');
}

function reasonOfEnd(pod: Pod): Ending {
  const { phase, reason = '', message } = pod.status ?? {};
  const terminated = mainStatus(pod)?.state?.terminated;
  const isOver = phase !== 'Failed' && terminated?.exitCode === 0;
  if (phase === 'Succeeded' || isOver) return { reason: 'Completed', message: 'The program ended with exit code 0.' };
  // Graceful node shutdown (kubernetes pkg/kubelet/nodeshutdown). A pod that is evicted for its own use says Evicted.
  if (reason === 'Terminated' && disruptionOf(pod)?.reason === 'TerminationByKubelet') {
    return { reason: 'NodeLost', message: 'The node shuts down. The instance starts again on another node.' };
  }
  if (ADMISSION.test(reason)) {
    return { reason: 'AdmissionRejected', message: `${reason}: ${words(message, 'the node refused the pod')}` };
  }
  if (reason === '' && terminated !== undefined) {
    const said = words(terminated.message, 'It wrote nothing to its log.');
    return { reason: 'ContainerFailed', message: `The program ended with exit code ${terminated.exitCode}. ${said}` };
  }
  return { reason: 'PodFailed', message: words([reason, message].filter(Boolean).join(': '), 'The pod failed.') };
}

export const POD_DELETED: Ending = {
  reason: 'PodDeleted',
  message: 'Another client deleted the pod. The controller creates a new one.',
};

/** Whether another client deletes the pod, or is about to: Kubernetes first writes Failed where the node is gone. */
export function isTakenAway(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined || disruptionOf(pod)?.reason === 'DeletionByPodGC';
}

/** So far apart the clocks of a node and of the API server may be. */
const CLOCKS_MS = 30_000;

/**
 * Whether a pod had ended when somebody asked for its deletion, as when old pods are cleared away: its program ended by
 * itself, and must not run once more for that.
 */
export function hadEndedBefore(pod: Pod): boolean {
  const { deletionTimestamp = '', deletionGracePeriodSeconds = 0 } = pod.metadata;
  const asked = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  const finished = Date.parse(mainStatus(pod)?.state?.terminated?.finishedAt ?? '');
  return hasStopped(pod) && finished > 0 && finished + CLOCKS_MS < asked;
}

/** Why the pod was deleted, when the controller did not delete it, and when it ended if it has. */
export function endingOfDeletion(observed: Pick<Observed, 'instance' | 'node' | 'now'>, pod: Pod): Ending {
  return { ...reasonOfDeletion(pod, observed.node), ...(hasStopped(pod) && endOf(observed, pod)) };
}

function reasonOfDeletion(pod: Pod, node: Node | undefined): Ending {
  const disruption = disruptionOf(pod);
  if (disruption?.reason === 'PreemptionByScheduler') {
    return {
      reason: 'Preempted',
      message: 'A pod of higher priority took the place. The instance starts again when other GPUs are free.',
    };
  }
  if (disruption?.reason === 'DeletionByTaintManager' || disruption?.reason === 'DeletionByPodGC') {
    const said = words(disruption.message, 'the node does not answer');
    return { reason: 'NodeLost', message: `Kubernetes deleted the pod: ${said}.` };
  }
  if (disruption?.reason === 'DeletionByDeviceTaintManager') {
    const said = words(disruption.message, 'a device is tainted');
    return { reason: 'GPUUnhealthy', message: `Kubernetes deleted the pod: ${said}.` };
  }
  const byClient = disruption === undefined || disruption.reason === 'EvictionByEvictionAPI';
  return byClient ? endingOfMissing(node) : POD_DELETED;
}

const DRAINED: Ending = {
  reason: 'NodeLost',
  message: 'The node is being drained. The instance starts again on another node.',
};

/**
 * Why a pod is gone that another client took away. On a node that nobody empties it counts as a failed start: tenants
 * who may delete their pods could start instances again and again.
 */
export function endingOfMissing(node: Node | undefined): Ending {
  return node !== undefined && isBeingEmptied(node) ? DRAINED : POD_DELETED;
}

/** Reasons of the kubelet for a container that it cannot create. */
const NOT_CREATED = new Set(['CreateContainerError', 'CreateContainerConfigError', 'RunContainerError']);

export function isNotCreated(reason: string): boolean {
  return NOT_CREATED.has(reason);
}

/**
 * Whether the controller made a pod for an instance: the pod says so where only the controller writes, or the status names
 * the pod, whatever its marks say.
 */
export function isPodOf({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>, pod: Pod): boolean {
  if (metadata.uid !== undefined && instanceUidOf(pod) === metadata.uid) return true;
  return pod.metadata.uid !== undefined && pod.metadata.uid === status?.podUid;
}
