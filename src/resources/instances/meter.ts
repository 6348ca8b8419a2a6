import type { GpuInstanceStatus } from './gpu-instance.ts';
import { isReadyReason, READY_REASONS } from './instance-state.ts';

/** Endings for which nodes, policies or the operator are to blame, as far as anybody knows. */
export const FAULTS_OF_CLUSTER = [
  'NodeLost',
  'PodFailed',
  'PodRejected',
  'QuotaExceeded',
  'PlaceLost',
  'AdmissionRejected',
  'ContainerNotCreated',
] as const;

/** Whether the cluster ends a start so: nobody pays for it unless its container ran. */
function isFreeUnlessRan(reason: string): boolean {
  if (isReadyReason(reason) && READY_REASONS[reason].state === 'interrupted') return true;
  return FAULTS_OF_CLUSTER.some((fault) => fault === reason);
}

/**
 * When the container of a start ran for the first time, milliseconds since the epoch; undefined before that. Of a container
 * on a simulated node nothing may be known but that its pod is ready.
 */
export function firstRan(stages: GpuInstanceStatus['stages']): number | undefined {
  const ran = stages?.started ?? stages?.ready;
  return ran === undefined ? undefined : Date.parse(ran);
}

/**
 * When the meter of a start began, milliseconds since the epoch: its container ran for the first time, or its place was
 * granted that others had to end for. Undefined before that, and where the cluster ends a start whose container never ran.
 */
export function meterBegan({ claim, stages, ending }: Pick<GpuInstanceStatus, 'claim' | 'stages' | 'ending'> = {}):
  | number
  | undefined {
  if (firstRan(stages) === undefined && ending !== undefined && isFreeUnlessRan(ending.reason)) return undefined;
  return claim?.byPreemption === true ? Date.parse(claim.grantedAt) : firstRan(stages);
}

/** When the meter of a start that ends stopped, as far as is known; milliseconds since the epoch. */
export function meterEnded({ at, finishedAt }: { at: string; finishedAt?: string | undefined }): number {
  return Date.parse(finishedAt ?? at);
}
