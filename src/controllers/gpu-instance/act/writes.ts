import { ConflictError, NotFoundError } from '../../../kube/errors.ts';
import { sameJson } from '../../../lib/json.ts';
import { PODS, type Pod } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance, type GpuInstanceStatus } from '../../../resources/gpu-instance.ts';
import { READY_REASONS, type ReadyReason } from '../../../resources/instance-state.ts';
import type { Observed } from '../decide/observed.ts';
import type { Run } from './run.ts';

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

interface Operation {
  op: 'test' | 'add' | 'replace';
  path: string;
  value: unknown;
}

function test(path: string, value: unknown): Operation {
  // A path that is not there equals null.
  return { op: 'test', path, value: value ?? null };
}

/**
 * Sends a JSON patch whose tests say what the decision rests on. Finer than a resource version: a writer of labels or
 * annotations that never rests cannot keep it from passing, and a stale leader's decision still fails.
 * @throws PatchTestFailedError, a ConflictError, when a test fails
 */
async function patchIf(
  run: Run,
  before: GpuInstance,
  operations: readonly Operation[],
  subresource?: 'status',
): Promise<GpuInstance> {
  const { deps, key, context } = run;
  const { namespace, name, uid, generation } = before.metadata;
  // The generation moves with every change of the spec and with a deletion.
  const body = [test('/metadata/uid', uid), test('/metadata/generation', generation), ...operations];
  const options = { type: 'json', signal: context.signal, ...(subresource && { subresource }) } as const;
  const after = await deps.client.patch(GPU_INSTANCES, { namespace, name }, body, options);
  deps.fence.wrote(key, deps.stores.instances, after);
  return after;
}

/**
 * Writes the status when it differs, on condition that spec, claim, ending and usage are as they were seen: a claim
 * decided on old knowledge, or by a leader that is none any more, fails here with ConflictError.
 */
export async function writeStatus(run: Run, before: GpuInstance, status: GpuInstanceStatus): Promise<GpuInstance> {
  const seen = before.status;
  if (sameJson(seen ?? {}, status)) return before;
  const decisions = ['claim', 'incarnation', 'ending', 'usage'] as const;
  const tests =
    seen === undefined ? [test('/status', undefined)] : decisions.map((name) => test(`/status/${name}`, seen[name]));
  const after = await patchIf(run, before, [...tests, { op: 'add', path: '/status', value: status }], 'status');
  tell(run, before, after);
  return after;
}

/** Stages that pass within this time are not written one by one: most starts need one write, not four. */
const QUICK_MS = 3_000;

function isPassing(status: GpuInstanceStatus): boolean {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || !isReadyReason(ready.reason)) return false;
  const { state } = READY_REASONS[ready.reason];
  return status.ending === undefined && (state === 'scheduling' || state === 'pulling' || state === 'starting');
}

/**
 * Writes what is seen, unless it is a passing stage of a start that has just begun: then it tells how many milliseconds
 * to wait before it is worth a write.
 */
export async function writeWhenDue(
  run: Run,
  observed: Observed,
  status: GpuInstanceStatus,
): Promise<number | undefined> {
  const { instance, now } = observed;
  const { claim } = instance.status ?? {};
  const left = claim === undefined ? 0 : Date.parse(claim.grantedAt) + QUICK_MS - now;
  if (left > 0 && isPassing(status) && instance.status?.conditions !== undefined) return left;
  await writeStatus(run, instance, status);
  return undefined;
}

/** Replaces the finalizers, on condition that they are as they were seen. */
export function writeFinalizers(run: Run, before: GpuInstance, finalizers: readonly string[]): Promise<GpuInstance> {
  const path = '/metadata/finalizers';
  return patchIf(run, before, [test(path, before.metadata.finalizers), { op: 'add', path, value: finalizers }]);
}

/** Sets spec.powerState to Stopped, on condition that the spec is as it was seen. */
export function switchOff(run: Run, before: GpuInstance): Promise<GpuInstance> {
  return patchIf(run, before, [{ op: 'add', path: '/spec/powerState', value: 'Stopped' }]);
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

function isReadyReason(reason: string): reason is ReadyReason {
  return Object.hasOwn(READY_REASONS, reason);
}
