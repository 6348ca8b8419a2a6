import { findCondition } from '../../kube/conditions.ts';
import { contentHash } from '../../lib/content-hash.ts';
import { ofFrozen } from '../../lib/of-frozen.ts';
import { type GpuInstance, type GpuInstanceSpec, type GpuInstanceStatus, MOST_START_REQUESTS } from './gpu-instance.ts';
import { slimSpec } from './slim-spec.ts';

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

/** Every reason of the Ready condition, with the state that it means (no object stores it) and a text for people. */
export const READY_REASONS = {
  Pending: { state: 'pending', help: 'The controller has not looked at the instance yet.' },
  WaitingForCapacity: { state: 'pending', help: 'No place that fits is free. The instance waits in line.' },
  PlaceComing: {
    state: 'pending',
    help: 'A place is reserved for the instance and becoming free: others end for it. It starts when they have ended.',
  },
  WaitingForOffer: {
    state: 'pending',
    help: 'No offer has this id now. The instance starts when one has it.',
  },
  TemplateNotFound: {
    state: 'pending',
    help: 'No InstanceTemplate has this id or hash. The instance starts when one has it.',
  },
  TemplateTooLarge: {
    state: 'pending',
    help: 'The content of the InstanceTemplate is larger than 256 KiB. The instance starts when it is smaller.',
  },
  PriceTooHigh: {
    state: 'pending',
    help: 'The GPUs cost more than the owner saw, or are priced in another currency. The instance starts when the price falls, or when spec.maxPricePerHour allows it.',
  },
  DiskNodeGone: {
    state: 'pending',
    help: 'The nodes that could mount the disk are gone. Bring one back, or delete the instance.',
  },
  QuotaExceeded: { state: 'pending', help: 'A ResourceQuota of the namespace has no room.' },
  NetworkOpen: {
    state: 'pending',
    help: 'The operator requires a NetworkPolicy that closes the namespace. The message says what is open.',
  },
  NamespaceTerminating: {
    state: 'pending',
    help: 'The namespace of the instance is being deleted, and the instance with it. Nothing starts there any more.',
  },
  TenantLimit: {
    state: 'pending',
    help: 'A ceiling of the tenant refuses, or its starts held GPUs for nothing. The message names the ceiling and the TenantPolicy it comes from, or says when the next start is due.',
  },
  BudgetExceeded: {
    state: 'pending',
    help: 'A budget of the tenant or of the key has no room. The message names it, and says when it renews and who can raise it.',
  },
  BackingOff: { state: 'pending', help: 'The last start failed. The controller waits before the next one.' },
  StartLimit: {
    state: 'pending',
    help: 'The instance has started eleven times within an hour, which is the most. The message says when the next start is due.',
  },
  Scheduling: { state: 'scheduling', help: 'The pod waits for the scheduler to bind it.' },
  Unschedulable: { state: 'scheduling', help: 'The scheduler cannot bind the pod. The message has its words.' },
  PullingImage: { state: 'pulling', help: 'The node pulls the image.' },
  ImagePullBackOff: { state: 'pulling', help: 'The node cannot pull the image. The kubelet tries again.' },
  Starting: { state: 'starting', help: 'The container starts.' },
  WaitingForLogin: {
    state: 'starting',
    help: 'The container runs. A login through the SSH gateway does not work yet.',
  },
  CrashLoop: {
    state: 'starting',
    help: 'The container ends again and again. The kubelet starts it after growing pauses.',
  },
  Running: { state: 'running', help: 'The instance is ready.' },
  Stopping: { state: 'stopping', help: 'The pod ends. The GPUs are not free yet.' },
  Stopped: { state: 'stopped', help: 'The instance is stopped, as spec.powerState says. The disk is kept.' },
  Expired: { state: 'stopped', help: 'The instance ran for maxDuration.' },
  Idle: { state: 'stopped', help: 'The instance was idle for idleTimeout.' },
  BudgetSpent: {
    state: 'stopped',
    help: 'A budget of the tenant or of the key was spent. The disk is kept. The instance does not start by itself when the budget renews.',
  },
  Completed: { state: 'stopped', help: 'The program of the image ended with exit code 0 (runtype args).' },
  Preempted: {
    state: 'interrupted',
    help: 'An on-demand instance took the GPUs. This instance starts again by itself.',
  },
  GPUUnhealthy: {
    state: 'interrupted',
    help: 'A GPU was unhealthy: spec.onGPUFailure is Restart, or its driver evicts. The instance starts again by itself, on healthy GPUs.',
  },
  NodeLost: {
    state: 'interrupted',
    help: 'The node does not answer. The instance waits until it answers or is removed.',
  },
  NoCapacity: { state: 'failed', help: 'No place that fits was free and spec.onNoCapacity is Fail.' },
  OfferNotFound: { state: 'failed', help: 'No offer had this id and spec.onNoCapacity is Fail.' },
  OfferChanged: { state: 'failed', help: 'The offer has less disk than the client saw.' },
  DiskTooLarge: { state: 'failed', help: 'The disk is larger than the offer allows.' },
  DiskLost: {
    state: 'failed',
    help: 'The disk of the instance is not there. When it comes back, the instance starts with it. A start that its owner asks for makes a new, empty disk.',
  },
  ImagePullFailed: {
    state: 'failed',
    help: 'The node could not pull the image for a long time. The GPUs were given back.',
  },
  InvalidImage: { state: 'failed', help: 'The image reference cannot be used.' },
  ForbiddenEnv: { state: 'failed', help: 'The environment has a variable that would choose devices of the node.' },
  ForbiddenRoot: {
    state: 'failed',
    help: 'The instance asks for root, and its namespace enforces Pod Security restricted.',
  },
  ForbiddenRuntimeClass: { state: 'failed', help: 'The tenant may not choose this RuntimeClass.' },
  NotATenant: { state: 'failed', help: 'The namespace belongs to the cluster or to Berth itself: nobody rents in it.' },
  ContainerFailed: {
    state: 'failed',
    help: 'The program of the image ended with an error (runtype args), or its container ended again and again before the instance was ready.',
  },
  PodRejected: {
    state: 'pending',
    help: 'The API server refuses the pod. The message has its words. The controller waits before the next try.',
  },
  NameConflict: { state: 'failed', help: 'A pod or a disk of this name exists and is not part of this instance.' },
  Deleting: { state: 'deleting', help: 'The instance is being deleted. The GPUs are not free yet.' },
} as const satisfies Record<string, { state: InstanceState; help: string }>;

export type ReadyReason = keyof typeof READY_REASONS;

export function isReadyReason(reason: string): reason is ReadyReason {
  return Object.hasOwn(READY_REASONS, reason);
}

/** State, reason and message of an instance, from its conditions and its deletion timestamp. */
export function instanceState(instance: Pick<GpuInstance, 'metadata' | 'status'>): {
  state: InstanceState;
  reason: ReadyReason;
  message: string;
} {
  const ready = findCondition(instance.status?.conditions, 'Ready');
  const message = ready?.message ?? '';
  if (instance.metadata.deletionTimestamp !== undefined) return { state: 'deleting', reason: 'Deleting', message };
  // While the claim is on the pod alone, no condition says more of it.
  const unsaid = ready === undefined && instance.status?.claim !== undefined ? 'Scheduling' : 'Pending';
  const reason = ready !== undefined && isReadyReason(ready.reason) ? ready.reason : unsaid;
  return { state: READY_REASONS[reason].state, reason, message };
}

/** Begins the hashes of this rule. Those before it, of the first rule, have no mark. */
const HASH_MARK = '2-';

/**
 * What the spec says about a start: what its pod is made of, and which place it gets. Edits of other fields neither bring
 * an ended instance back nor cut a pause short.
 */
export const startHash = ofFrozen((spec: GpuInstanceSpec): string => {
  // A spec from a cache has digests for its long texts, and must have the same hash.
  const { type, offerId, gpu, diskGb, offerDiskSpace, templateId, templateHashId, ...rest } = slimSpec(spec);
  const { image, imagePullSecrets, runtype, command, args, onStart, env, ports, runtimeClassName, hostUsers } = rest;
  const place = { type, offerId, gpu, diskGb, offerDiskSpace, runtimeClassName, hostUsers };
  const named = { templateId, templateHashId, image, imagePullSecrets };
  const program = { ...named, runtype, command, args, onStart, env, ports, runAsRoot: rest.runAsRoot };
  return HASH_MARK + contentHash({ ...place, ...program });
});

/** The hash as the first rule has it, by which endings of that time are known. */
function firstStartHash(spec: GpuInstanceSpec): string {
  const { displayName: _n, label: _l, powerState: _p, startRequest: _r, ...rest } = slimSpec(spec);
  const { diskPolicy: _d, onExpiry: _e, onGPUFailure: _g, sshKeyIds: _k, installMonitoring: _m, ...content } = rest;
  return contentHash(content);
}

/** Whether the spec says of a start what it said when this hash was made, by whichever rule. */
export function isOfHash(hash: string, spec: GpuInstanceSpec): boolean {
  return hash === (hash.startsWith(HASH_MARK) ? startHash(spec) : firstStartHash(spec));
}

/** The start requests that need no start any more. Earlier releases had the last one alone, in the ending. */
function honouredRequests({ startRequests = [], ending }: GpuInstanceStatus): string[] {
  const last = ending?.startRequest;
  return last === undefined || startRequests.includes(last) ? startRequests : [...startRequests, last];
}

/** What the status says of start requests once that of the spec needs no start any more: it has one, or it came too late. */
export function withStartRequest(
  status: GpuInstanceStatus,
  { startRequest }: GpuInstanceSpec,
): Pick<GpuInstanceStatus, 'startRequests'> {
  const honoured = honouredRequests(status).filter((one) => one !== startRequest);
  const all = startRequest === undefined ? honoured : [...honoured, startRequest];
  return all.length === 0 ? {} : { startRequests: all.slice(-MOST_START_REQUESTS) };
}

/**
 * Whether the spec has a start request that was never honoured. An applier may put an older one back, or take the text
 * away because it knows nothing of it: neither is a request.
 */
export function hasNewStartRequest({ spec, status = {} }: Pick<GpuInstance, 'spec' | 'status'>): boolean {
  return spec.startRequest !== undefined && !honouredRequests(status).includes(spec.startRequest);
}

/**
 * Whether the owner has asked for another start since the ending in the status: by another `startRequest`, by switching
 * the instance off and on, or by an edit of what a start depends on. Such an edit mends what failed; it brings back no
 * instance that ran to its end.
 */
export function isAskedForAgain({
  metadata,
  spec,
  status,
}: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): boolean {
  const { ending } = status ?? {};
  if (ending?.generation === undefined || ending.generation === metadata.generation) return false;
  if (ending.startHash === undefined) return true;
  if (hasNewStartRequest({ spec, status })) return true;
  return stateAfter(ending.reason) !== 'stopped' && !isOfHash(ending.startHash, spec);
}

/**
 * Whether the instance is off until its owner asks for a start: by `powerState`, or because its last start ended in a
 * way that does not heal by waiting. The controller never writes the first, which is the owner's.
 */
export function isSwitchedOff(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): boolean {
  const { spec, status } = instance;
  if (spec.powerState === 'Stopped') return true;
  const after = stateAfter(status?.ending?.reason ?? '');
  // Of an ending Stopped the switch was the reason, and it is on again.
  if (status?.ending?.reason === 'Stopped' || (after !== 'stopped' && after !== 'failed')) return false;
  return !isAskedForAgain(instance);
}

/** The state that an ending leads to; undefined for those of a pod, after which the controller tries again. */
function stateAfter(ending: string): InstanceState | undefined {
  return isReadyReason(ending) ? READY_REASONS[ending].state : undefined;
}
