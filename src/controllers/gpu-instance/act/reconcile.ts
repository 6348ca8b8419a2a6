import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { shownIn } from '../../../kube/watch/resource-version.ts';
import type { Result } from '../../../runtime/controller.ts';
import { isBeforeFirstStart, storedOf } from '../../../resources/pod/claim-on-pod.ts';
import { FINALIZER } from '../decide/names.ts';
import { keepOrphan, writeLateUsageRecords } from './clean-up.ts';
import { readLiveView } from './live-view.ts';
import type { Run } from './run.ts';
import { type Progress, walk } from './walk.ts';
import { countClaimOf } from './write-claim.ts';

type Current = Pick<Progress, 'pods'> & { instance: GpuInstance | undefined };

/**
 * The instance from the cache; from the API server when a claim of it may or may not have been written. Where it can
 * still be written to a pod that is on its way, it stays undecided: another place must not be granted beside it.
 */
async function currentInstance(run: Run): Promise<Current> {
  const { deps, key } = run;
  const { inventory } = deps;
  const seen = deps.stores.instances.get(key);
  const cached = seen && storedOf(seen);
  const undecided = inventory.undecided(key);
  if (undecided === undefined) return { instance: cached, pods: undefined };
  const live = await readLiveView(run, undecided, []);
  if (live === undefined) {
    inventory.forget(key);
    // Gone, or followed by another of its name.
    return { instance: cached?.metadata.uid === undecided.metadata.uid ? undefined : cached, pods: undefined };
  }
  const { instance, pods } = live;
  const [pod] = pods;
  if (instance.status?.claim !== undefined) inventory.written(key, shownIn(deps.stores.instances, instance));
  else if (countClaimOf(run, instance, pod)) return { instance, pods };
  else if (!deps.config.claimOnPod || !isBeforeFirstStart(instance)) inventory.forget(key);
  return { instance, pods: pod && pods };
}

async function reconcile(run: Run): Promise<Result> {
  run.deps.tenantLine.remove(run.key);
  await writeLateUsageRecords(run);
  await keepOrphan(run);
  const { instance, pods } = await currentInstance(run);
  const hasFinalizer = instance?.metadata.finalizers?.includes(FINALIZER) ?? false;
  // Gone, or deleted before it had the finalizer: there is nothing to clean up.
  if (instance === undefined || (!hasFinalizer && instance.metadata.deletionTimestamp !== undefined)) {
    run.deps.line.remove(run.key);
    return undefined;
  }
  return walk(run, { instance, pods, hasFinalizer, isCertain: false });
}

/** Makes the cluster match one instance, as far as it can be done now. */
export async function reconcileInstance(run: Run): Promise<Result> {
  try {
    return await reconcile(run);
  } catch (error) {
    // An instance that fails here must hold up no other. The next try puts it back into the waiting line, at its place.
    run.deps.line.pause(run.key);
    throw error;
  }
}
