import type { GpuInstance, GpuInstanceStatus } from '../../../resources/gpu-instance.ts';
import type { UsageRecord } from '../../../resources/usage-record.ts';
import { usageNameOf } from './names.ts';
import { addMoney, costOf } from '../../../resources/money.ts';

/**
 * Usage with the current start added: from ready until `end`. Written in the same status write that takes the claim away,
 * so a start is counted once, whoever writes it and however often it is tried.
 */
function closedUsage(status: GpuInstanceStatus, end: number): GpuInstanceStatus['usage'] {
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

/** What an instance has cost. The name comes from the uid, so there is one record, however often it is written. */
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
