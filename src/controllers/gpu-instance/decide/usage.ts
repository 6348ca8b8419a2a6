import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import type { UsageRecord } from '../../../resources/usage-record.ts';
import { usageNameOf } from './names.ts';
import { addMoney, costOf } from '../../../resources/money.ts';

// Usage with the current start added, from ready until `end`. The status write that removes the claim writes it too, so
// a start is counted once, however often the write is tried.
function closedUsage(status: GpuInstanceStatus, end: number): GpuInstanceStatus['usage'] {
  const { claim, stages, usage } = status;
  if (claim === undefined) return usage;
  // A start that was never ready cost nothing, in the currency of its place.
  if (stages?.ready === undefined) return usage ?? { gpuSeconds: 0, cost: '0.00', currency: claim.currency };
  const ms = Math.max(0, end - Date.parse(stages.ready));
  const cost = costOf(claim.pricePerHour, ms);
  return {
    gpuSeconds: Math.round((usage?.gpuSeconds ?? 0) * 1000 + ms * claim.gpuCount) / 1000,
    cost: usage === undefined ? cost : addMoney(usage.cost, cost),
    currency: claim.currency,
  };
}

/** What the status says of the bill when the current start, if there is one, ends at `end`. */
export function closedBill(status: GpuInstanceStatus, end: number): Pick<GpuInstanceStatus, 'usage' | 'lastProduct'> {
  const { claim } = status;
  const usage = closedUsage(status, end);
  return {
    ...(usage && { usage }),
    ...(claim && { lastProduct: { product: claim.product, gpuCount: claim.gpuCount } }),
  };
}

/** The record of what an instance has cost. Its name comes from the uid: it can be written once only. */
export function usageRecord(instance: GpuInstance, now: number): UsageRecord {
  const { metadata, status = {} } = instance;
  const { usage, stages, lastProduct } = status;
  return {
    metadata: {
      name: usageNameOf(instance),
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
    },
    spec: {
      instance: metadata.name,
      instanceUid: metadata.uid ?? '',
      product: lastProduct?.product ?? '',
      gpuCount: lastProduct?.gpuCount ?? 0,
      gpuSeconds: usage?.gpuSeconds ?? 0,
      cost: usage?.cost ?? '0.00',
      currency: usage?.currency ?? '',
      ...(status.firstReady !== undefined && { startedAt: status.firstReady }),
      endedAt: stages?.stopped ?? new Date(now).toISOString(),
    },
  };
}
