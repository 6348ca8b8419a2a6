import type { GpuInstance } from '../resources/gpu-instance.ts';

/** How long a failed start counts against its node. */
export const FAILURE_WINDOW_MS = 600_000;
/** Instances whose starts failed on a node within the window before nothing new is placed there. */
export const QUARANTINE_AFTER = 3;

/** A failed start on a node. */
export interface NodeFailure {
  node: string;
  at: number;
}

/** The failures that an instance's status tells of. They live in the status so that every process knows them. */
export function nodeFailuresOf(instance: Pick<GpuInstance, 'status'>): NodeFailure[] {
  const failures = instance.status?.failures;
  if (failures === undefined) return [];
  const at = Date.parse(failures.lastTime);
  return (failures.nodes ?? []).map((node) => ({ node, at }));
}

/** Until when a node is in quarantine, given when starts of different instances failed on it; undefined when it is not. */
export function quarantinedUntil(failedAt: Iterable<number>, now: number): number | undefined {
  const recent = [...failedAt].filter((at) => at + FAILURE_WINDOW_MS > now).toSorted((a, b) => b - a);
  const deciding = recent[QUARANTINE_AFTER - 1];
  return deciding === undefined ? undefined : deciding + FAILURE_WINDOW_MS;
}
