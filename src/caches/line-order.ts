import { findCondition } from '../kube/conditions.ts';
import { compareText } from '../lib/compare.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';

/** Sorts on-demand before interruptible, then older before younger. */
export function rankOf({ metadata, spec }: GpuInstance): string {
  const { creationTimestamp = '', namespace = '', name } = metadata;
  return `${spec.type === 'OnDemand' ? 0 : 1}/${creationTimestamp}/${namespace}/${name}`;
}

/** Which of two instances that wait for a place is served first. */
export function compareRanks(a: GpuInstance, b: GpuInstance): number {
  return compareText(rankOf(a), rankOf(b));
}

/** Whether an instance waits for a place, whatever its state is called meanwhile. */
export function isWaiting({ status }: GpuInstance): boolean {
  return findCondition(status?.conditions, 'Claimed')?.reason === 'WaitingForCapacity';
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
