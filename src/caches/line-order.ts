import { findCondition } from '../kube/conditions.ts';
import { compareText } from '../lib/compare.ts';
import { ANSWERED, type GpuInstance } from '../resources/instances/gpu-instance.ts';

const WHOLE_SECONDS = '2026-01-01T00:00:00Z'.length;

/** Sorts on-demand before interruptible, then who has waited longer. Nobody chooses the uid, which decides the rest. */
export function rankOf({ metadata, spec, status }: GpuInstance): string {
  const { creationTimestamp = '', uid = '' } = metadata;
  const since = status?.waitingSince ?? creationTimestamp;
  const exact = since.length === WHOLE_SECONDS ? since.replace('Z', '.000Z') : since;
  return `${spec.type === 'OnDemand' ? 0 : 1}/${exact}/${uid}`;
}

/** Which of two instances that wait for a place is served first. */
export function compareRanks(a: GpuInstance, b: GpuInstance): number {
  return compareText(rankOf(a), rankOf(b));
}

/** Whether an instance waits for a place, whatever its state is called meanwhile. */
export function isWaiting(instance: GpuInstance): boolean {
  return waitsAs(instance) === 'WaitingForCapacity' || isPlaceComing(instance);
}

/** Whether a place is reserved for an instance that others leave. */
export function isPlaceComing(instance: GpuInstance): boolean {
  return waitsAs(instance) === 'PlaceComing';
}

/** Whether others leave, or have left, for an instance without a place. It stays in line whatever becomes of its client. */
export function doOthersEnd(instance: GpuInstance): boolean {
  return isPlaceComing(instance) || instance.status?.othersEnded === true;
}

/**
 * Whether the client of an instance has an answer that it is there, or may have: it had a place, others end for it, or
 * the HTTP interface marked it just before it said so.
 */
export function mayBeAnswered(instance: GpuInstance): boolean {
  const { metadata, status } = instance;
  return (status?.incarnation ?? 0) > 0 || doOthersEnd(instance) || metadata.annotations?.[ANSWERED] !== undefined;
}

function waitsAs({ status }: GpuInstance): string | undefined {
  return findCondition(status?.conditions, 'Claimed')?.reason;
}

/** How many of a line, in order, are served before a rank. `rankAt`: the rank at an index below `length`. */
export function countBefore(length: number, rankAt: (index: number) => string | undefined, rank: string): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rankAt(middle) ?? '') < rank) low = middle + 1;
    else high = middle;
  }
  return low;
}
