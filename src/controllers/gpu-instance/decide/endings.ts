import type { GpuInstance, GpuInstanceStatus } from '../../../resources/gpu-instance.ts';
import type { ReadyReason } from '../../../resources/instance-state.ts';

interface EndingRule {
  /** Reason of the Ready condition while the pod still holds its GPUs. */
  meanwhile: ReadyReason;
  /** Reason once the GPUs are free: what the instance waits for, or how it ended. */
  after: ReadyReason;
  /** What follows: another start, another start after a growing pause, or nothing until the owner asks for a start. */
  next: 'restart' | 'backOff' | 'stop';
  /** The node is to blame: it is avoided, and quarantined when several instances fail on it. */
  blamesNode: boolean;
}

/**
 * Everything that can end a start. The ending is written to the status before anything is done about it. When the
 * controller dies in between, the next one goes on with the same decision.
 */
const ENDINGS = {
  Stopped: { meanwhile: 'Stopping', after: 'Stopped', next: 'stop', blamesNode: false },
  Expired: { meanwhile: 'Stopping', after: 'Expired', next: 'stop', blamesNode: false },
  Idle: { meanwhile: 'Stopping', after: 'Idle', next: 'stop', blamesNode: false },
  Completed: { meanwhile: 'Stopping', after: 'Completed', next: 'stop', blamesNode: false },
  ContainerFailed: { meanwhile: 'Stopping', after: 'ContainerFailed', next: 'stop', blamesNode: false },
  InvalidImage: { meanwhile: 'Stopping', after: 'InvalidImage', next: 'stop', blamesNode: false },
  ImagePullFailed: { meanwhile: 'Stopping', after: 'ImagePullFailed', next: 'stop', blamesNode: false },
  NameConflict: { meanwhile: 'Stopping', after: 'NameConflict', next: 'stop', blamesNode: false },
  NoCapacity: { meanwhile: 'Stopping', after: 'NoCapacity', next: 'stop', blamesNode: false },
  OfferNotFound: { meanwhile: 'Stopping', after: 'OfferNotFound', next: 'stop', blamesNode: false },
  OfferChanged: { meanwhile: 'Stopping', after: 'OfferChanged', next: 'stop', blamesNode: false },
  DiskTooLarge: { meanwhile: 'Stopping', after: 'DiskTooLarge', next: 'stop', blamesNode: false },
  Preempted: { meanwhile: 'Preempted', after: 'Preempted', next: 'restart', blamesNode: false },
  NodeLost: { meanwhile: 'NodeLost', after: 'NodeLost', next: 'restart', blamesNode: false },
  PodDeleted: { meanwhile: 'Stopping', after: 'BackingOff', next: 'backOff', blamesNode: false },
  PodFailed: { meanwhile: 'Stopping', after: 'BackingOff', next: 'backOff', blamesNode: false },
  PodRejected: { meanwhile: 'PodRejected', after: 'PodRejected', next: 'backOff', blamesNode: false },
  QuotaExceeded: { meanwhile: 'QuotaExceeded', after: 'QuotaExceeded', next: 'backOff', blamesNode: false },
  PlaceLost: { meanwhile: 'Stopping', after: 'BackingOff', next: 'backOff', blamesNode: false },
  AdmissionRejected: { meanwhile: 'Stopping', after: 'BackingOff', next: 'backOff', blamesNode: true },
  ContainerInvalid: { meanwhile: 'Stopping', after: 'BackingOff', next: 'backOff', blamesNode: false },
  ContainerNotCreated: { meanwhile: 'Stopping', after: 'BackingOff', next: 'backOff', blamesNode: true },
} as const satisfies Record<string, EndingRule>;

type EndingReason = keyof typeof ENDINGS;
export interface Ending {
  reason: EndingReason;
  message: string;
  /** When the use of the GPUs ended, if that was before now; milliseconds since the epoch. */
  at?: number;
}

/** An ending as it stands in a status, with its rule. */
export interface SeenEnding {
  reason: EndingReason;
  message: string;
  at: string;
  generation: number | undefined;
  rule: EndingRule;
}

/** The ending in a status; undefined when there is none, or one of a newer version of Berth. */
export function endingOf(status: GpuInstanceStatus | undefined): SeenEnding | undefined {
  const ending = status?.ending;
  if (ending === undefined || !isEndingReason(ending.reason)) return undefined;
  const { reason, message, at, generation } = ending;
  return { reason, message, at, generation, rule: ENDINGS[reason] };
}

/**
 * Whether the instance must still be switched off for its ending. It must not once its owner has switched it on again.
 */
export function mustSwitchOff({ metadata, spec, status }: GpuInstance): boolean {
  const ending = endingOf(status);
  if (ending === undefined || ending.rule.next !== 'stop' || ending.reason === 'Stopped') return false;
  return spec.powerState === 'Running' && ending.generation === metadata.generation;
}

function isEndingReason(reason: string): reason is EndingReason {
  return Object.hasOwn(ENDINGS, reason);
}
