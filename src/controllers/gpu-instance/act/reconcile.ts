import { NotFoundError } from '../../../kube/errors.ts';
import { keyOf, type Pod, refOf } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Result } from '../../../runtime/controller.ts';
import { claimPlace } from './claim.ts';
import { cleanUp } from './clean-up.ts';
import { createPod } from './create-pod.ts';
import type { Run } from './run.ts';
import { checkJupyter, checkLogin } from './login.ts';
import type { Ending } from '../decide/endings.ts';
import { mustBeCertain, readLiveView } from './live-view.ts';
import { FINALIZER } from '../decide/names.ts';
import { observe } from './observe.ts';
import type { Observed } from '../decide/observed.ts';
import { planNext, type Step } from '../decide/plan.ts';
import type { Waiting } from '../decide/status/ready.ts';
import { repair } from './repair.ts';
import { nextLook, settleStatus } from './settle.ts';
import { statusOf } from '../decide/status/status.ts';
import { endedStatus, releasedStatus } from '../decide/transitions.ts';
import { billVanished } from '../vanished.ts';
import { deletePods, switchOff, writeFinalizers, writeStatus } from './writes.ts';

/** Steps of one run; more would be a circle. */
const MAX_STEPS = 12;

interface Moved {
  instance: GpuInstance;
  /** The pods, where the step made or found one that the cache does not show yet. */
  pods?: readonly Pod[];
}

/** Takes one step. `undefined`: nothing more to do in this run but to tell what is seen. */
async function take(run: Run, step: Step, observed: Observed): Promise<Moved | { waiting: Waiting } | undefined> {
  const { deps } = run;
  const { instance, settings, now } = observed;
  const end = async (ending: Ending): Promise<Moved> => {
    const next = { ...observed, instance: { ...instance, status: endedStatus(instance, ending, now) } };
    return { instance: await writeStatus(run, instance, statusOf(next, deps.config.ssh)) };
  };
  switch (step.do) {
    case 'claim': {
      if (settings === undefined) return undefined;
      const outcome = await claimPlace(run, observed, settings);
      if (!('refused' in outcome)) return outcome;
      deps.line.remove(run.key);
      return end(outcome.refused);
    }
    case 'createPod': {
      const { claim } = instance.status ?? {};
      if (claim === undefined) return undefined;
      const outcome = await createPod(run, observed, claim);
      if ('pod' in outcome) return { instance, pods: [outcome.pod] };
      return end(outcome.ending);
    }
    case 'end':
      return end(step.ending);
    case 'switchOff':
      return { instance: await switchOff(run, instance) };
    case 'deleteInstance': {
      const { namespace, name, uid = '', resourceVersion = '' } = instance.metadata;
      const options = { signal: run.context.signal, uid, resourceVersion };
      await deps.client.delete(GPU_INSTANCES, { namespace, name }, options);
      return undefined;
    }
    case 'deletePods':
      await deletePods(run, step.pods);
      return undefined;
    case 'release':
      return { instance: await writeStatus(run, instance, releasedStatus(instance, step.ending, now)) };
    default:
      return undefined;
  }
}

/** The instance to work on: the cached one, or a live one when a write of it may or may not have been made. */
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

/** Makes the world match one instance, as far as it can be done now. */
export async function reconcileInstance(run: Run): Promise<Result> {
  try {
    return await reconcile(run);
  } catch (error) {
    // Whoever cannot be served now holds nobody up; the next try takes the place in line that its age gives it.
    run.deps.line.remove(run.key);
    throw error;
  }
}

async function reconcile(run: Run): Promise<Result> {
  const { deps, key } = run;
  await billVanished(run);
  const instance = await currentInstance(run);
  if (instance === undefined) {
    deps.line.remove(key);
    return undefined;
  }
  const { finalizers = [], deletionTimestamp } = instance.metadata;
  const isHeld = finalizers.includes(FINALIZER);
  // Deleted before we ever held it: there is nothing of ours to clean up.
  if (!isHeld && deletionTimestamp !== undefined) {
    deps.line.remove(key);
    return undefined;
  }
  // The claim lives in the instance itself, so it may be written beside the finalizer; whatever else is made waits.
  const holding = isHeld ? Promise.resolve() : hold(run, instance);
  // Awaited before the first thing that needs it; a failure until then is no unhandled one.
  holding.catch(() => undefined);
  const result = await walk(run, instance, holding);
  await holding;
  return result;
}

async function hold(run: Run, instance: GpuInstance): Promise<void> {
  await writeFinalizers(run, instance, [...(instance.metadata.finalizers ?? []), FINALIZER]);
}

/** Takes one step after the other until nothing is left to do now. */
async function walk(run: Run, first: GpuInstance, holding: Promise<void>): Promise<Result> {
  const { deps, key } = run;
  let instance = first;
  let pods: readonly Pod[] | undefined;
  let isCertain = false;
  for (let count = 0; count < MAX_STEPS; count += 1) {
    let observed = observe(deps, instance, { ...(pods && { pods }), login: undefined });
    const repaired = await repair(run, instance, observed.pods);
    pods = repaired.pods;
    observed = { ...observed, pods, pod: pods.find((pod) => pod.metadata.name === instance.status?.podName) };
    const step = planNext(observed);
    if (step.do !== 'claim') {
      deps.line.remove(key);
      await holding;
    }
    if (mustBeCertain(step) && !isCertain) {
      const live = await readLiveView(run, instance, pods);
      if (live === undefined) return undefined;
      ({ instance, pods } = live);
      isCertain = true;
      continue;
    }
    if (step.do === 'cleanUp') {
      await cleanUp(run, instance);
      return undefined;
    }
    observed = { ...observed, login: checkLogin(run, observed), jupyter: checkJupyter(run, observed) };
    const moved = await take(run, step, observed);
    if (moved !== undefined && 'instance' in moved) {
      instance = moved.instance;
      pods = moved.pods ?? pods;
      // What was just granted has no pod yet; a creation that failed may have made one all the same.
      isCertain = step.do === 'claim' || (isCertain && step.do !== 'createPod');
      continue;
    }
    const waiting = moved?.waiting;
    const told = await settleStatus(run, observed, statusOf(observed, deps.config.ssh, waiting));
    const next = nextLook(observed, { step, told, isHidden: isHidden(run, pods) });
    const afterMs = Math.min(next?.requeueAfterMs ?? Infinity, repaired.againAfterMs ?? Infinity);
    return Number.isFinite(afterMs) ? { requeueAfterMs: afterMs } : undefined;
  }
  throw new Error('The instance went round in a circle; this is a bug.');
}

/** Whether the cache does not show a pod that is there: when it goes before the cache hears of it, nobody would say so. */
function isHidden({ deps }: Run, pods: readonly Pod[]): boolean {
  return pods.some((pod) => deps.stores.pods.get(keyOf(pod)) === undefined);
}
