import { pick } from '../lib/json.ts';
import { costOf, partOf } from '../resources/money.ts';
import type { Claim } from '../resources/instances/claim.ts';
import type { GpuInstanceStatus } from '../resources/instances/gpu-instance.ts';
import { BILLED, type Interval } from '../resources/instances/interval.ts';
import { meterBegan } from '../resources/instances/meter.ts';
import { silencesIn, silentMs } from './silence.ts';

/** GPU milliseconds of so many milliseconds with these GPUs, rounded half up. A slice counts as its part of a GPU. */
export function gpuMsOf({ gpuCount, gpuShare }: Pick<Claim, 'gpuCount' | 'gpuShare'>, ms: number): number {
  return Number(partOf(BigInt(Math.max(0, Math.round(ms))) * BigInt(gpuCount), gpuShare));
}

/**
 * Milliseconds by which the clocks of two leaders may differ: each is within five seconds of the API server's
 * (src/runtime/clock-check.ts). A start that ended later than that after the next one got its place ended by a clock that
 * was wrong.
 */
export const MOST_APART_MS = 10_000;

/** Until when earlier starts are billed, as far as this one has to begin later; milliseconds since the epoch. */
function billedUntil({ claim, usage }: GpuInstanceStatus): number {
  const until = Date.parse(usage?.until ?? '');
  return until - Date.parse(claim?.grantedAt ?? '') <= MOST_APART_MS ? until : 0;
}

/**
 * Since when the current start is billed, milliseconds since the epoch; undefined while it is not. It begins when the
 * meter did, but not before the last start ended: after a clock went back, no moment is billed twice.
 */
function openSince(status: GpuInstanceStatus): number | undefined {
  const began = meterBegan(status);
  return status.claim === undefined || began === undefined ? undefined : Math.max(began, billedUntil(status));
}

/** How long the current start is billed for when it ends at a moment, in milliseconds: without silences of its node. */
export function billedMs(status: GpuInstanceStatus, end: number): number {
  const from = openSince(status) ?? Infinity;
  return end > from ? Math.max(0, end - from - silentMs(status.silences, from, end)) : 0;
}

/**
 * The bill of the current start if it ended at `end`, milliseconds since the epoch. Undefined when there is no start,
 * and when there is nothing to bill: its container never ran, or it ended no later than it began. The silences of its
 * node are in it, and not billed.
 */
export function intervalOf(status: GpuInstanceStatus, end: number): Interval | undefined {
  const { claim, incarnation = 0, diskGb, devices } = status;
  const from = openSince(status);
  const ms = billedMs(status, end);
  if (claim === undefined || from === undefined || ms <= 0) return undefined;
  const silences = silencesIn(status.silences, from, end);
  return {
    start: incarnation,
    from: new Date(from).toISOString(),
    to: new Date(end).toISOString(),
    ...pick(claim, BILLED),
    ...(diskGb !== undefined && { diskGb }),
    ...(devices !== undefined && { devices }),
    ...(silences.length > 0 && { silences }),
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
