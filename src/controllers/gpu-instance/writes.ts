import { ConflictError, NotFoundError } from '../../kube/errors.ts';
import { PODS, type Pod } from '../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance, type GpuInstanceStatus } from '../../resources/gpu-instance.ts';
import { READY_REASONS, type ReadyReason } from '../../resources/instance-state.ts';
import type { Run } from './deps.ts';
import { mergePatch } from './merge-patch.ts';

function readyReason(status: GpuInstanceStatus | undefined): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

// What passes in a moment is told by the conditions; an Event for each would be noise.
const QUIET: ReadonlySet<string> = new Set(['Pending', 'Scheduling', 'PullingImage', 'Starting', 'WaitingForLogin']);
const GOOD: ReadonlySet<string> = new Set(['Running', 'Stopping', 'Stopped', 'Completed', 'Deleting']);

/** One Event per change of the summary that a reader of `kubectl describe` wants to know of. */
function tell({ deps }: Run, before: GpuInstance, after: GpuInstance): void {
  const ready = after.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.reason === readyReason(before.status) || QUIET.has(ready.reason)) return;
  const claim = after.status?.claim;
  const where = ready.reason === 'Running' && claim ? ` ${claim.gpuCount} x ${claim.product} on ${claim.node}.` : '';
  deps.events.record(GPU_INSTANCES, after, {
    type: GOOD.has(ready.reason) ? 'Normal' : 'Warning',
    reason: ready.reason,
    message: `${ready.message}${where}`,
  });
}

/**
 * Writes what differs of the status, on condition that nobody wrote the instance meanwhile: a claim decided on old
 * knowledge, or by a leader that is none any more, fails here with ConflictError.
 */
export async function writeStatus(run: Run, before: GpuInstance, status: GpuInstanceStatus): Promise<GpuInstance> {
  const patch = mergePatch(before.status ?? {}, status);
  if (patch === undefined) return before;
  const { namespace, name, resourceVersion } = before.metadata;
  const body = { metadata: { resourceVersion }, status: patch };
  const options = { type: 'merge', subresource: 'status', signal: run.context.signal } as const;
  const after = await run.deps.client.patch(GPU_INSTANCES, { namespace, name }, body, options);
  run.deps.fence.wrote(run.key, run.deps.stores.instances, after);
  tell(run, before, after);
  return after;
}

/** Changes metadata or spec of an instance, on condition that nobody wrote it meanwhile. */
export async function writeInstance(run: Run, before: GpuInstance, patch: object): Promise<GpuInstance> {
  const { namespace, name, resourceVersion } = before.metadata;
  const { metadata, ...rest } = patch as { metadata?: object };
  const body = { metadata: { ...metadata, resourceVersion }, ...rest };
  const options = { type: 'merge', signal: run.context.signal } as const;
  const after = await run.deps.client.patch(GPU_INSTANCES, { namespace, name }, body, options);
  run.deps.fence.wrote(run.key, run.deps.stores.instances, after);
  return after;
}

/** Deletes pods gracefully, each by its uid; never by force, since a pod that still runs still has its GPUs. */
export async function deletePods(run: Run, pods: readonly Pod[]): Promise<void> {
  const { deps, key, context } = run;
  for (const pod of pods) {
    const { namespace, name, uid } = pod.metadata;
    const options = { signal: context.signal, ...(uid !== undefined && { uid }) };
    try {
      await deps.client.delete(PODS, { namespace, name }, options);
      deps.fence.deleted(key, deps.stores.pods, pod);
    } catch (error) {
      // Another pod has the name by now: the one that was meant is gone.
      if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
    }
  }
}

export function isReadyReason(reason: string): reason is ReadyReason {
  return Object.hasOwn(READY_REASONS, reason);
}
