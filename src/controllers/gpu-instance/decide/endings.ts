import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { isOfHash, type ReadyReason, startHash } from '../../../resources/instances/instance-state.ts';
import { FAULTS_OF_CLUSTER } from '../../../resources/instances/meter.ts';

interface EndingRule {
  /** Reason of the Ready condition while the pod still holds its GPUs. */
  whileEnding: ReadyReason;
  /** Reason once the GPUs are free: what the instance waits for, or how it ended. */
  afterRelease: ReadyReason;
  /**
   * What follows: another start, another start after a growing pause, or nothing until the owner asks for a start. The
   * last are those whose state afterwards is stopped or failed.
   */
  next: 'restart' | 'backOff' | 'stop';
  /** The node is to blame: it is avoided, and quarantined when several instances fail on it. */
  blamesNode: boolean;
  /** The node is avoided by this instance alone: something refuses the place that the node itself may not know of. */
  avoidsNode?: boolean;
}

// Everything that can end a start. The ending is written to the status before anything is done about it. When the
// controller dies in between, the next one goes on with the same decision.
const ENDINGS = {
  Stopped: { whileEnding: 'Stopping', afterRelease: 'Stopped', next: 'stop', blamesNode: false },
  Expired: { whileEnding: 'Stopping', afterRelease: 'Expired', next: 'stop', blamesNode: false },
  Idle: { whileEnding: 'Stopping', afterRelease: 'Idle', next: 'stop', blamesNode: false },
  BudgetSpent: { whileEnding: 'Stopping', afterRelease: 'BudgetSpent', next: 'stop', blamesNode: false },
  Completed: { whileEnding: 'Stopping', afterRelease: 'Completed', next: 'stop', blamesNode: false },
  ContainerFailed: { whileEnding: 'Stopping', afterRelease: 'ContainerFailed', next: 'stop', blamesNode: false },
  InvalidImage: { whileEnding: 'Stopping', afterRelease: 'InvalidImage', next: 'stop', blamesNode: false },
  ImagePullFailed: { whileEnding: 'Stopping', afterRelease: 'ImagePullFailed', next: 'stop', blamesNode: false },
  ForbiddenEnv: { whileEnding: 'Stopping', afterRelease: 'ForbiddenEnv', next: 'stop', blamesNode: false },
  ForbiddenRoot: { whileEnding: 'Stopping', afterRelease: 'ForbiddenRoot', next: 'stop', blamesNode: false },
  ForbiddenRuntimeClass: {
    whileEnding: 'Stopping',
    afterRelease: 'ForbiddenRuntimeClass',
    next: 'stop',
    blamesNode: false,
  },
  NotATenant: { whileEnding: 'Stopping', afterRelease: 'NotATenant', next: 'stop', blamesNode: false },
  NameConflict: { whileEnding: 'Stopping', afterRelease: 'NameConflict', next: 'stop', blamesNode: false },
  NoCapacity: { whileEnding: 'Stopping', afterRelease: 'NoCapacity', next: 'stop', blamesNode: false },
  OfferNotFound: { whileEnding: 'Stopping', afterRelease: 'OfferNotFound', next: 'stop', blamesNode: false },
  OfferChanged: { whileEnding: 'Stopping', afterRelease: 'OfferChanged', next: 'stop', blamesNode: false },
  DiskTooLarge: { whileEnding: 'Stopping', afterRelease: 'DiskTooLarge', next: 'stop', blamesNode: false },
  DiskLost: { whileEnding: 'Stopping', afterRelease: 'DiskLost', next: 'stop', blamesNode: false },
  Preempted: { whileEnding: 'Preempted', afterRelease: 'Preempted', next: 'restart', blamesNode: false },
  // A program that breaks its GPUs would break those of all nodes, one after the other, without a growing pause. After a
  // start that was good the pause is a second.
  GPUUnhealthy: { whileEnding: 'GPUUnhealthy', afterRelease: 'GPUUnhealthy', next: 'backOff', blamesNode: false },
  NodeLost: { whileEnding: 'NodeLost', afterRelease: 'NodeLost', next: 'restart', blamesNode: false },
  PodDeleted: { whileEnding: 'Stopping', afterRelease: 'BackingOff', next: 'backOff', blamesNode: false },
  PodFailed: { whileEnding: 'Stopping', afterRelease: 'BackingOff', next: 'backOff', blamesNode: false },
  PodRejected: { whileEnding: 'PodRejected', afterRelease: 'PodRejected', next: 'backOff', blamesNode: false },
  QuotaExceeded: { whileEnding: 'QuotaExceeded', afterRelease: 'QuotaExceeded', next: 'backOff', blamesNode: false },
  PlaceLost: {
    whileEnding: 'Stopping',
    afterRelease: 'BackingOff',
    next: 'backOff',
    blamesNode: false,
    avoidsNode: true,
  },
  AdmissionRejected: { whileEnding: 'Stopping', afterRelease: 'BackingOff', next: 'backOff', blamesNode: true },
  ContainerInvalid: { whileEnding: 'Stopping', afterRelease: 'BackingOff', next: 'backOff', blamesNode: false },
  ContainerNotCreated: { whileEnding: 'Stopping', afterRelease: 'BackingOff', next: 'backOff', blamesNode: true },
} as const satisfies Record<string, EndingRule>;

type EndingReason = keyof typeof ENDINGS;
export const ENDING_REASONS = Object.keys(ENDINGS);

/** Endings that a tenant can bring about, by its image or its commands. */
const BY_TENANT: ReadonlySet<EndingReason> = new Set([
  'Stopped',
  'ImagePullFailed',
  'InvalidImage',
  'ContainerInvalid',
  'ContainerFailed',
  'PodDeleted',
]);

export function isByTenant(reason: EndingReason): boolean {
  return BY_TENANT.has(reason);
}

const BY_CLUSTER: ReadonlySet<EndingReason> = new Set(FAULTS_OF_CLUSTER);

/** Whether nodes, policies or the operator are to blame, as far as anybody knows. */
export function isFaultOfCluster(reason: EndingReason): boolean {
  return BY_CLUSTER.has(reason);
}

export interface Ending {
  reason: EndingReason;
  message: string;
  /** When the use of the GPUs ended, if that is known to be before now; milliseconds since the epoch. */
  at?: number;
  /** The uid of the instance that takes the GPUs. */
  by?: string | undefined;
}

/** An ending as it stands in a status, with its rule. */
export interface SeenEnding {
  reason: EndingReason;
  message: string;
  at: string;
  /** When the container had ended; undefined while nothing is known of it. */
  finishedAt?: string | undefined;
  rule: EndingRule;
}

/** The ending in a status; undefined when there is none, or one of a newer version of Berth. */
export function endingOf(status: GpuInstanceStatus | undefined): SeenEnding | undefined {
  const ending = status?.ending;
  if (ending === undefined || !isEndingReason(ending.reason)) return undefined;
  const { reason, message, at, finishedAt } = ending;
  return { reason, message, at, ...(finishedAt !== undefined && { finishedAt }), rule: ENDINGS[reason] };
}

/**
 * Whether Berth owes the next start: something ended the last one that its owner did not ask for and that heals by
 * waiting, and the owner has not switched the instance off since. What its owner asks for meanwhile takes nothing away.
 */
export function isOwed({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): boolean {
  const { ending } = status ?? {};
  if (ending === undefined || endingOf(status)?.rule.next === 'stop') return false;
  return ending.startHash !== undefined || ending.generation === metadata.generation;
}

/**
 * The ending as the status goes on with it. Once an instance is switched off, switching it on again asks for a start: the
 * ending no longer holds it. A hash by an earlier rule becomes one by the present rule as long as it says the same: an
 * edit that asked for a start before goes on asking.
 */
export function settledEnding({ spec, status }: GpuInstance): Pick<GpuInstanceStatus, 'ending'> {
  if (status?.ending?.startHash === undefined) return {};
  const { startHash: before, limit: _limit, ...ending } = status.ending;
  if (spec.powerState !== 'Running') return { ending };
  return isOfHash(before, spec) ? { ending: { ...status.ending, startHash: startHash(spec) } } : {};
}

function isEndingReason(reason: string): reason is EndingReason {
  return Object.hasOwn(ENDINGS, reason);
}
