import { findCondition } from '../kube/conditions.ts';
import type { GpuInstance } from './gpu-instance.ts';

export type InstanceState =
  | 'pending'
  | 'scheduling'
  | 'pulling'
  | 'starting'
  | 'running'
  | 'stopping'
  | 'stopped'
  | 'interrupted'
  | 'failed'
  | 'deleting';

/**
 * Every reason the Ready condition of a GPUInstance may have, with the state it means and, for people, what it says.
 * The state is derived from here wherever it is shown and stored nowhere.
 */
export const READY_REASONS = {
  Pending: { state: 'pending', help: 'The controller has not looked at the instance yet.' },
  WaitingForCapacity: { state: 'pending', help: 'No place that fits is free; the instance waits in line.' },
  QuotaExceeded: { state: 'pending', help: 'A ResourceQuota of the namespace has no room.' },
  BackingOff: { state: 'pending', help: 'The last start failed; the next one waits its time.' },
  Scheduling: { state: 'scheduling', help: 'The pod exists and the scheduler binds it.' },
  Unschedulable: { state: 'scheduling', help: 'The scheduler cannot bind the pod; its words are in the message.' },
  PullingImage: { state: 'pulling', help: 'The node fetches the image.' },
  ImagePullBackOff: { state: 'pulling', help: 'The image cannot be fetched now; the kubelet tries again.' },
  Starting: { state: 'starting', help: 'The container starts.' },
  WaitingForLogin: {
    state: 'starting',
    help: 'The container runs; a login through the SSH gateway does not work yet.',
  },
  CrashLoop: {
    state: 'starting',
    help: 'The container ends again and again; the kubelet starts it with growing pauses.',
  },
  Running: { state: 'running', help: 'The instance is up.' },
  Stopping: { state: 'stopping', help: 'The pod ends; the GPUs are not free yet.' },
  Stopped: { state: 'stopped', help: 'Stopped as spec.powerState asks; the disk is kept.' },
  Expired: { state: 'stopped', help: 'maxDuration is over.' },
  Idle: { state: 'stopped', help: 'idleTimeout is over.' },
  Completed: { state: 'stopped', help: 'The program of the image ended with exit code 0 (runtype args).' },
  Preempted: { state: 'interrupted', help: 'An on-demand instance took the GPUs; this one comes back by itself.' },
  NodeLost: { state: 'interrupted', help: 'The node does not answer; the instance waits for it or for its end.' },
  NoCapacity: { state: 'failed', help: 'No place that fits was free and spec.onNoCapacity is Fail.' },
  OfferNotFound: { state: 'failed', help: 'No offer has this id.' },
  OfferChanged: { state: 'failed', help: 'The offer now has less disk than the client saw.' },
  TemplateNotFound: { state: 'failed', help: 'No InstanceTemplate has this id or hash.' },
  DiskTooLarge: { state: 'failed', help: 'The disk asked for is larger than the offer has.' },
  ImagePullFailed: {
    state: 'failed',
    help: 'The image could not be fetched for a long time; the GPUs were given back.',
  },
  InvalidImage: { state: 'failed', help: 'The image reference cannot be used.' },
  ContainerFailed: { state: 'failed', help: 'The program of the image ended with an error (runtype args).' },
  PodRejected: {
    state: 'pending',
    help: 'The API server refuses the pod; its words are in the message. The next try waits its time.',
  },
  NameConflict: { state: 'failed', help: 'A pod or disk of this name belongs to somebody else.' },
  Deleting: { state: 'deleting', help: 'The instance is being removed; the GPUs are not free yet.' },
} as const satisfies Record<string, { state: InstanceState; help: string }>;

export type ReadyReason = keyof typeof READY_REASONS;

function isReadyReason(reason: string): reason is ReadyReason {
  return Object.hasOwn(READY_REASONS, reason);
}

/** State, reason and message of an instance, from its conditions and deletion timestamp alone. */
export function instanceState(instance: Pick<GpuInstance, 'metadata' | 'status'>): {
  state: InstanceState;
  reason: ReadyReason;
  message: string;
} {
  const ready = findCondition(instance.status?.conditions, 'Ready');
  const message = ready?.message ?? '';
  if (instance.metadata.deletionTimestamp !== undefined) return { state: 'deleting', reason: 'Deleting', message };
  const reason = ready !== undefined && isReadyReason(ready.reason) ? ready.reason : 'Pending';
  return { state: READY_REASONS[reason].state, reason, message };
}
