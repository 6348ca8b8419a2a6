import type { Condition } from './types.ts';

/** What a controller found. `reason` is CamelCase and never empty; `message` is for people. */
export interface Finding {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
}

// metav1.Condition's own limit.
const MAX_MESSAGE = 32_768;

/**
 * The list with one condition set; the others and their order stay. `lastTransitionTime` moves only when `status` flips
 * (api-conventions.md), so a condition that says the same stays equal and needs no write.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  finding: Finding,
  context: { observedGeneration: number | undefined; now: number },
): Condition[] {
  const list = conditions ?? [];
  const before = findCondition(list, finding.type);
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

/** The condition of this type of any object: of Berth's resources, pods and nodes alike. */
export function findCondition<C extends { type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** A metav1.Time: the API server keeps whole seconds. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}
