import { FINALIZER } from '../../../resources/cleanup.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { keyOf } from '../../../kube/types.ts';
import { shownIn } from '../../../kube/watch/resource-version.ts';
import type { Result } from '../../../runtime/controller.ts';
import { firstPodOf, isBeforeFirstStart, storedOf, withClaimOf } from '../../../resources/pod/claim-on-pod.ts';
import { keepOrphan, writeLateUsageRecords } from './clean-up.ts';
import { readLiveView } from './live-view.ts';
import { leaveLines, type Run } from './run.ts';
import { type Progress, walk } from './walk.ts';
import { countClaimOf } from './write-claim.ts';

type Current = Pick<Progress, 'pods'> & { instance: GpuInstance | undefined };

/**
 * The instance from the cache; from the API server while no cache shows a claim that was written or may have been: another
 * place must not be granted beside it. Where it can still be written to a pod that is on its way, it stays undecided.
 */
async function currentInstance(run: Run): Promise<Current> {
  const { deps, key } = run;
  const { inventory, stores, fence } = deps;
  const seen = stores.instances.get(key);
  const cached = seen && storedOf(seen);
  const isUndecided = inventory.undecided(key) !== undefined;
  const unseen = inventory.unseen(key);
  if (unseen === undefined) return { instance: cached, pods: undefined };
  const live = await readLiveView(run, unseen, []);
  if (live === undefined) {
    inventory.forget(key);
    // Gone, or followed by another of its name.
    return { instance: cached?.metadata.uid === unseen.metadata.uid ? undefined : cached, pods: undefined };
  }
  const { instance, pods } = live;
  const [pod] = pods;
  if (instance.status?.claim !== undefined) {
    inventory.written(key, shownIn(stores.instances, instance));
    fence.wrote(key, stores.instances, instance);
  } else if (countClaimOf(run, instance, pod)) return { instance, pods };
  else if (!isUndecided || !deps.config.claimOnPod || !isBeforeFirstStart(instance)) {
    inventory.forget(key);
    deps.line.notGranted(key);
  }
  return { instance, pods: pod && pods };
}

/** Whether a start of the instance has a place, by its status or by its pod. `pods`: as the API server has them. */
function holdsPlace({ deps }: Run, instance: GpuInstance, pods: Current['pods']): boolean {
  const { namespace } = instance.metadata;
  const [bearer = deps.stores.pods.get(keyOf({ namespace, name: firstPodOf(instance) }))] = pods ?? [];
  return withClaimOf(instance, bearer).status?.claim !== undefined;
}

async function reconcile(run: Run): Promise<Result> {
  await writeLateUsageRecords(run);
  await keepOrphan(run);
  const { instance, pods } = await currentInstance(run);
  const isDeleted = instance?.metadata.deletionTimestamp !== undefined;
  const hasFinalizer = instance?.metadata.finalizers?.includes(FINALIZER) ?? false;
  // Gone, or deleted before it had the finalizer: there is nothing to clean up.
  if (instance === undefined || (isDeleted && !hasFinalizer && !holdsPlace(run, instance, pods))) {
    // The finalizer of another may keep it for ever. If a pod with the claim comes late, its start ends by that.
    if (run.deps.inventory.undecided(run.key) !== undefined) run.deps.inventory.forget(run.key);
    leaveLines(run);
    return undefined;
  }
  // Somebody took the finalizer off, and that of another keeps the instance. Its start ends all the same, and none can be
  // added to what is deleted.
  return walk(run, { instance, pods, hasFinalizer: hasFinalizer || isDeleted, isCertain: false });
}

/** Makes the cluster match one instance, as far as it can be done now. */
export async function reconcileInstance(run: Run): Promise<Result> {
  try {
    return await reconcile(run);
  } catch (error) {
    // An instance that fails here must hold up no other. The next try puts it back into the waiting line, at its place.
    run.deps.line.pause(run.key);
    run.deps.tenantLine.remove(run.key);
    throw error;
  } finally {
    run.deps.line.lookedAt(run.key);
  }
}
