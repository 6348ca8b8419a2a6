import type { GpuInstanceStatus } from './gpu-instance.ts';

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
 * granted that others had to end for. Undefined before that.
 */
export function meterBegan({ claim, stages }: Pick<GpuInstanceStatus, 'claim' | 'stages'> = {}): number | undefined {
  return claim?.byPreemption === true ? Date.parse(claim.grantedAt) : firstRan(stages);
}

/** When the meter of a start that ends stopped, as far as is known; milliseconds since the epoch. */
export function meterEnded({ at, finishedAt }: { at: string; finishedAt?: string | undefined }): number {
  return Date.parse(finishedAt ?? at);
}
