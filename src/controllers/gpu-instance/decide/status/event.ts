import { findCondition } from '../../../../kube/conditions.ts';
import type { EventFields } from '../../../../kube/events.ts';
import { gpusAre, recoveredAt } from '../../../../resources/instances/gpu-health.ts';
import type { GpuInstance } from '../../../../resources/instances/gpu-instance.ts';

// The conditions report what passes in a moment. An Event for each of these would be noise.
const QUIET: ReadonlySet<string> = new Set(['Pending', 'Scheduling', 'PullingImage', 'Starting', 'WaitingForLogin']);
const NORMAL: ReadonlySet<string> = new Set(['Running', 'Stopping', 'Stopped', 'Completed', 'Deleting']);

/** The Event for a change of the Ready condition; undefined where `kubectl describe` has no need of one. */
function ofReady(before: GpuInstance, after: GpuInstance): EventFields | undefined {
  const ready = findCondition(after.status?.conditions, 'Ready');
  const old = findCondition(before.status?.conditions, 'Ready');
  if (ready === undefined || ready.reason === old?.reason || QUIET.has(ready.reason)) return undefined;
  const { reason, message } = ready;
  const claim = after.status?.claim;
  const where = reason === 'Running' && claim ? ` ${claim.gpuCount} x ${claim.product} on ${claim.node}.` : '';
  return { type: NORMAL.has(reason) ? 'Normal' : 'Warning', reason, message: `${message}${where}` };
}

function ofGPUs({ status: before = {} }: GpuInstance, { status: after = {} }: GpuInstance): EventFields | undefined {
  const known = new Set(before.unhealthyGPUs?.map(({ id }) => id));
  const fresh = after.unhealthyGPUs?.filter(({ id }) => !known.has(id)) ?? [];
  if (fresh.length > 0) {
    const message = `${gpusAre(fresh)} unhealthy, as the node reports.`;
    return { type: 'Warning', reason: 'GPUBecameUnhealthy', message };
  }
  const recovered = recoveredAt(after);
  if (recovered === undefined || recovered === recoveredAt(before)) return undefined;
  return { type: 'Normal', reason: 'GPURecovered', message: 'The GPUs of the instance are healthy again.' };
}

/** The Events for a change of the status. */
export function eventsOf(before: GpuInstance, after: GpuInstance): EventFields[] {
  return [ofReady(before, after), ofGPUs(before, after)].filter((event) => event !== undefined);
}
