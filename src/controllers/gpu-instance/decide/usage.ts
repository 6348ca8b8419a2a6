import type { GpuInstanceStatus } from '../../../resources/gpu-instance.ts';
import { addMoney, costOf } from '../../../resources/money.ts';

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

/** What a status says of the bill once the current start, if there is one, has ended at `end`. */
export function closedBill(status: GpuInstanceStatus, end: number): Pick<GpuInstanceStatus, 'usage' | 'lastProduct'> {
  const { claim } = status;
  const usage = closedUsage(status, end);
  return {
    ...(usage && { usage }),
    ...(claim && { lastProduct: { product: claim.product, gpuCount: claim.gpuCount } }),
  };
}
