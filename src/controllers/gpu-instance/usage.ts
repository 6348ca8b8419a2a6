import type { Pod } from '../../kube/types.ts';
import type { GpuInstanceStatus } from '../../resources/gpu-instance.ts';
import { addMoney, costOf } from '../../resources/money.ts';

/** When a pod stopped using its GPUs: its container's end when that is known, else `now`. */
export function endOfUse(pod: Pod | undefined, now: number): number {
  const ends = (pod?.status?.containerStatuses ?? []).map(({ state }) =>
    Date.parse(state?.terminated?.finishedAt ?? ''),
  );
  const known = ends.filter((end) => Number.isFinite(end));
  return known.length === 0 ? now : Math.min(now, Math.max(...known));
}

/**
 * Usage with the current start added: from ready until `end`. Written in the same status write that takes the claim away,
 * so a start is counted once, whoever writes it and however often it is tried.
 */
export function closedUsage(status: GpuInstanceStatus, end: number): GpuInstanceStatus['usage'] {
  const { claim, stages, usage } = status;
  if (claim === undefined || stages?.ready === undefined) return usage;
  const ms = Math.max(0, end - Date.parse(stages.ready));
  const cost = costOf(claim.pricePerHour, ms);
  return {
    gpuSeconds: (usage?.gpuSeconds ?? 0) + (ms / 1000) * claim.gpuCount,
    cost: usage === undefined ? cost : addMoney(usage.cost, cost),
    currency: claim.currency,
  };
}
