import type { Condition } from './types.ts';

/** What a controller found; `reason` is CamelCase and never empty, `message` is for people. */
export interface Finding {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
}

// metav1.Condition's own limit.
const MAX_MESSAGE = 32_768;

/**
 * The list with one condition set, the others and their order untouched. `lastTransitionTime` moves only when `status`
 * flips (api-conventions.md), so a condition that says the same stays equal and need not be written.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  finding: Finding,
  context: { observedGeneration: number | undefined; now: number },
): Condition[] {
  const list = conditions ?? [];
  const before = list.find(({ type }) => type === finding.type);
  const after: Condition = {
    type: finding.type,
    status: finding.status,
    reason: finding.reason,
    message: finding.message.slice(0, MAX_MESSAGE),
    lastTransitionTime: before?.status === finding.status ? before.lastTransitionTime : rfc3339(context.now),
    ...(context.observedGeneration !== undefined && { observedGeneration: context.observedGeneration }),
  };
  return before ? list.map((one) => (one === before ? after : one)) : [...list, after];
}

export function findCondition<T extends { type: string }>(
  conditions: readonly T[] | undefined,
  type: string,
): T | undefined {
  return conditions?.find((condition) => condition.type === type);
}

export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/** A metav1.Time: whole seconds, which is all that the API server keeps. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}
