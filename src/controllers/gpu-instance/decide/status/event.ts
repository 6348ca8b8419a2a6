import { findCondition } from '../../../../kube/conditions.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';

// The conditions report what passes in a moment. An Event for each of these would be noise.
const QUIET: ReadonlySet<string> = new Set(['Pending', 'Scheduling', 'PullingImage', 'Starting', 'WaitingForLogin']);
const NORMAL: ReadonlySet<string> = new Set(['Running', 'Stopping', 'Stopped', 'Completed', 'Deleting']);

/** The Event for a change of the Ready condition; undefined where `kubectl describe` has no need of one. */
export function eventOf(
  before: GpuInstance,
  after: GpuInstance,
): { type: 'Normal' | 'Warning'; reason: string; message: string } | undefined {
  const ready = findCondition(after.status?.conditions, 'Ready');
  const old = findCondition(before.status?.conditions, 'Ready');
  if (ready === undefined || ready.reason === old?.reason || QUIET.has(ready.reason)) return undefined;
  const { reason, message } = ready;
  const claim = after.status?.claim;
  const where = reason === 'Running' && claim ? ` ${claim.gpuCount} x ${claim.product} on ${claim.node}.` : '';
  return { type: NORMAL.has(reason) ? 'Normal' : 'Warning', reason, message: `${message}${where}` };
}
