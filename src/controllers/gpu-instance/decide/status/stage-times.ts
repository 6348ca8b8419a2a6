import type { Pod } from '../../../../kube/types.ts';
import type { GpuInstanceStatus } from '../../../../resources/instances/gpu-instance.ts';
import { podCondition } from '../pod/pod-facts.ts';

/** The parts of a start that are measured, in order. Each ends with what its name says. */
export const START_STAGES = ['claimed', 'waited', 'scheduled', 'prepared', 'started', 'ready'] as const;

export interface StageTime {
  stage: (typeof START_STAGES)[number];
  seconds: number;
}

function secondsBetween(from: string | undefined, to: string | undefined): number | undefined {
  const ms = Date.parse(to ?? '') - Date.parse(from ?? '');
  return Number.isFinite(ms) ? Math.max(0, ms) / 1000 : undefined;
}

function timeOf(pod: Pod, type: string): string | undefined {
  const condition = podCondition(pod, type);
  return condition?.status === 'True' ? condition.lastTransitionTime : undefined;
}

/**
 * How long the first claim of an instance took. `waited`: a place was not free, or a ceiling or a quota had no room, and
 * the status said so before. Later starts have no time at which they were asked for.
 */
export function claimTime(before: GpuInstanceStatus | undefined, after: GpuInstanceStatus): StageTime | undefined {
  const seconds = secondsBetween(after.stages?.accepted, after.stages?.claimed);
  if (after.incarnation !== 1 || seconds === undefined) return undefined;
  return { stage: before?.conditions === undefined ? 'claimed' : 'waited', seconds };
}

/**
 * How long each part of a start took from the claim to a login, when `after` is the status that first says ready; else
 * none. What Kubernetes says of a pod is in whole seconds.
 */
export function startTimes(
  before: GpuInstanceStatus | undefined,
  after: GpuInstanceStatus,
  pod: Pod | undefined,
): StageTime[] {
  const { claimed, scheduled, started, ready } = after.stages ?? {};
  if (before?.stages?.ready !== undefined || ready === undefined || pod === undefined) return [];
  // Network and volumes are there, then the init containers have ended. A pod without the latter says so early.
  const marks = [scheduled, timeOf(pod, 'PodReadyToStartContainers'), timeOf(pod, 'Initialized')];
  const prepared = marks
    .filter((mark) => mark !== undefined)
    .toSorted((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);
  const parts = [
    ['scheduled', claimed, scheduled],
    ['prepared', scheduled, prepared],
    ['started', prepared, started],
    ['ready', started, ready],
  ] as const;
  return parts.flatMap(([stage, from, to]) => {
    const seconds = secondsBetween(from, to);
    return seconds === undefined ? [] : [{ stage, seconds }];
  });
}
