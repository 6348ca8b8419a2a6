import { ConflictError, NotFoundError } from '../../../kube/errors.ts';
import { sameJson } from '../../../lib/json.ts';
import { PODS, type Pod } from '../../../kube/types.ts';
import { isNewEnding } from '../decide/status/start-trace.ts';
import { GPU_INSTANCES, type GpuInstance, type GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { eventsOf } from '../decide/status/event.ts';
import type { Run } from './run.ts';

type Operation = { op: 'test' | 'add'; path: string; value: unknown } | { op: 'move'; from: string; path: string };

function test(path: string, value: unknown): Operation {
  // A missing path equals null.
  return { op: 'test', path, value: value ?? null };
}

// Sends a JSON patch whose tests name what the decision depends on. Unlike a resource version, they let it pass beside
// a client that keeps changing labels or annotations, and the decision of a stale leader still fails: with
// PatchTestFailedError, a ConflictError.
async function patchIf(
  run: Run,
  before: GpuInstance,
  operations: readonly Operation[],
  subresource?: 'status',
): Promise<GpuInstance> {
  const { deps, key, context } = run;
  const { namespace, name, uid, generation } = before.metadata;
  // Every change of the spec and a deletion change the generation.
  const body = [test('/metadata/uid', uid), test('/metadata/generation', generation), ...operations];
  const options = { type: 'json', signal: context.signal, ...(subresource && { subresource }) } as const;
  const after = await deps.client.patch(GPU_INSTANCES, { namespace, name }, body, options);
  deps.fence.wrote(key, deps.stores.instances, after);
  return after;
}

const TEMPLATE = '/status/template';

// What an instance keeps of its template may be long, and stays as it is: it is put aside and back, not sent again.
function replaceStatus(seen: GpuInstanceStatus | undefined, status: GpuInstanceStatus): Operation[] {
  const { template, ...rest } = status;
  if (template === undefined || template !== seen?.template) return [{ op: 'add', path: '/status', value: status }];
  return [
    { op: 'move', from: TEMPLATE, path: '/template' },
    { op: 'add', path: '/status', value: rest },
    { op: 'move', from: '/template', path: TEMPLATE },
  ];
}

function decisionsOf(seen: GpuInstanceStatus | undefined): Operation[] {
  if (seen === undefined) return [test('/status', undefined)];
  const decisions = [
    'claim',
    'incarnation',
    'ending',
    'usage',
    'records',
    'stages',
    'silences',
    'othersEnded',
  ] as const;
  const { template } = seen;
  const kept = template === undefined ? test(TEMPLATE, undefined) : test(`${TEMPLATE}/hashId`, template.hashId);
  return [...decisions.map((name) => test(`/status/${name}`, seen[name])), kept];
}

/** Writes the status when it differs. ConflictError unless spec and what was decided before are as they were seen. */
export async function writeStatus(run: Run, before: GpuInstance, status: GpuInstanceStatus): Promise<GpuInstance> {
  const seen = before.status;
  if (sameJson(seen ?? {}, status)) return before;
  const after = await patchIf(run, before, [...decisionsOf(seen), ...replaceStatus(seen, status)], 'status');
  const { ending } = status;
  if (ending !== undefined && isNewEnding(status, seen)) run.deps.noteEnding(ending.reason);
  run.deps.noteStatus?.(before, status);
  for (const event of eventsOf(before, after)) run.deps.events.record(GPU_INSTANCES, after, event);
  return after;
}

/** Replaces the finalizers, on condition that they are as they were seen. */
export function writeFinalizers(run: Run, before: GpuInstance, finalizers: readonly string[]): Promise<GpuInstance> {
  const path = '/metadata/finalizers';
  return patchIf(run, before, [test(path, before.metadata.finalizers), { op: 'add', path, value: finalizers }]);
}

/** Deletes pods gracefully, each by its uid. Never by force: a pod that still runs still has its GPUs. */
export async function deletePods(run: Run, pods: readonly Pod[]): Promise<void> {
  const { deps, key, context } = run;
  for (const pod of pods) {
    const { namespace, name, uid } = pod.metadata;
    const options = { signal: context.signal, ...(uid !== undefined && { uid }) };
    try {
      await deps.client.delete(PODS, { namespace, name }, options);
      deps.fence.deleted(key, deps.stores.pods, pod);
    } catch (error) {
      // The pod is gone, and another pod may have its name.
      if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
    }
  }
}
