import { NotFoundError } from '../../../kube/errors.ts';
import { refOf } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { Result } from '../../../runtime/controller.ts';
import { FINALIZER } from '../decide/names.ts';
import { releaseLostDisk, writeLateUsageRecords } from './clean-up.ts';
import type { Run } from './run.ts';
import { walk } from './walk.ts';

/** The instance from the cache; from the API server when a claim of it may or may not have been written. */
async function currentInstance({ deps, key, context }: Run): Promise<GpuInstance | undefined> {
  const cached = deps.stores.instances.get(key);
  if (!deps.inventory.isUndecided(key)) return cached;
  try {
    const live = await deps.client.get(GPU_INSTANCES, refOf(key), { signal: context.signal });
    if (live.status?.claim === undefined) deps.inventory.forget(key);
    else deps.inventory.written(live);
    return live;
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    deps.inventory.forget(key);
    return undefined;
  }
}

async function reconcile(run: Run): Promise<Result> {
  run.deps.tenantLine.remove(run.key);
  await writeLateUsageRecords(run);
  await releaseLostDisk(run);
  const instance = await currentInstance(run);
  const hasFinalizer = instance?.metadata.finalizers?.includes(FINALIZER) ?? false;
  // Gone, or deleted before it had the finalizer: there is nothing to clean up.
  if (instance === undefined || (!hasFinalizer && instance.metadata.deletionTimestamp !== undefined)) {
    run.deps.line.remove(run.key);
    return undefined;
  }
  return walk(run, { instance, pods: undefined, hasFinalizer, isCertain: false });
}

/** Makes the cluster match one instance, as far as it can be done now. */
export async function reconcileInstance(run: Run): Promise<Result> {
  try {
    return await reconcile(run);
  } catch (error) {
    // An instance that fails here must hold up no other. The next try puts it back into the waiting line, by its age.
    run.deps.line.remove(run.key);
    throw error;
  }
}
