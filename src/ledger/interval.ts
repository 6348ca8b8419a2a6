import { pick } from '../lib/json.ts';
import { costOf, partOf } from '../resources/money.ts';
import type { Claim } from '../resources/instances/claim.ts';
import type { GpuInstanceStatus } from '../resources/instances/gpu-instance.ts';
import { BILLED, type Interval } from '../resources/instances/interval.ts';

/** GPU milliseconds of so many milliseconds with these GPUs, rounded half up. A slice counts as its part of a GPU. */
export function gpuMsOf({ gpuCount, gpuShare }: Pick<Claim, 'gpuCount' | 'gpuShare'>, ms: number): number {
  return Number(partOf(BigInt(Math.max(0, Math.round(ms))) * BigInt(gpuCount), gpuShare));
}

/**
 * The bill of the current start if it ended at `end`, milliseconds since the epoch. Undefined when there is no start,
 * and when there is nothing to bill: it was never ready, or it ended no later than it was. It begins when the start
 * was ready, but not before the last start ended: after a clock went back, no moment is billed twice.
 */
export function intervalOf(status: GpuInstanceStatus, end: number): Interval | undefined {
  const { claim, stages, usage, incarnation = 0, diskGb } = status;
  if (claim === undefined || stages?.ready === undefined) return undefined;
  const from = Math.max(Date.parse(stages.ready), usage?.until === undefined ? 0 : Date.parse(usage.until));
  if (!(end > from)) return undefined;
  const ms = end - from;
  return {
    start: incarnation,
    from: new Date(from).toISOString(),
    to: new Date(end).toISOString(),
    ...pick(claim, BILLED),
    ...(diskGb !== undefined && { diskGb }),
    gpuSeconds: gpuMsOf(claim, ms) / 1000,
    cost: costOf(claim.pricePerHour, ms),
  };
}

/** What starts cost before the status kept them apart: it is known in sum, and counts for the moment when they ended. */
function carriedOf({ usage, claim, stages, firstReady, lastProduct }: GpuInstanceStatus): Interval[] {
  if (usage === undefined || usage.gpuSeconds === 0) return [];
  const at = claim?.grantedAt ?? stages?.stopped ?? firstReady ?? new Date(0).toISOString();
  const { product = '', gpuCount = 0 } = lastProduct ?? {};
  const { gpuSeconds, cost, currency } = usage;
  return [{ start: 0, from: at, to: at, product, gpuCount, currency, gpuSeconds, cost }];
}

/** The starts that have ended and are in no usage record yet, oldest first. */
export function endedIntervals(status: GpuInstanceStatus): readonly Interval[] {
  return status.intervals ?? carriedOf(status);
}
