import { keyOf, type Pod } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Result } from '../../../runtime/controller.ts';
import { FINALIZER } from '../decide/names.ts';
import { nextLook } from '../decide/next-look.ts';
import type { Observed } from '../decide/observed.ts';
import { mustBeCertain, planNext, type Step } from '../decide/plan.ts';
import type { Waiting } from '../decide/status/ready.ts';
import { statusOf } from '../decide/status/status.ts';
import { checkJupyter, checkLogin } from './check-pod.ts';
import { cleanUp } from './clean-up.ts';
import { readLiveView } from './live-view.ts';
import { observe } from './observe.ts';
import { repair, type Repaired } from './repair.ts';
import type { Run } from './run.ts';
import { takeStep } from './take-step.ts';
import { writeFinalizers, writeWhenDue } from './writes.ts';

/** How far a run has come. */
export interface Progress {
  instance: GpuInstance;
  /** The pods of the instance, where this run knows more than the cache. */
  pods: readonly Pod[] | undefined;
  /** Whether the instance has the finalizer. */
  isHeld: boolean;
  /** Whether instance and pods were read from the API server, or come from what this run wrote. */
  isCertain: boolean;
}

type Advance = { progress: Progress } | { done: Result };

/** Steps of one run; more would be a circle. */
const MAX_STEPS = 12;

/** Takes one step after the other until nothing is left to do now. */
export async function walk(run: Run, first: Progress): Promise<Result> {
  let progress = first;
  for (let count = 0; count < MAX_STEPS; count += 1) {
    const advance = await advanceOne(run, progress);
    if ('done' in advance) return advance.done;
    progress = advance.progress;
  }
  throw new Error('The instance went round in a circle; this is a bug.');
}

async function advanceOne(run: Run, progress: Progress): Promise<Advance> {
  const { instance } = progress;
  const { observed, repaired } = await look(run, progress);
  const { pods } = repaired;
  const step = planNext(observed);
  if (step.do !== 'claim') {
    run.deps.line.remove(run.key);
    if (!progress.isHeld) return { progress: { ...progress, pods, instance: await hold(run, instance), isHeld: true } };
  }
  if (mustBeCertain(step) && !progress.isCertain) {
    const live = await readLiveView(run, instance, pods);
    return live === undefined ? { done: undefined } : { progress: { ...progress, ...live, isCertain: true } };
  }
  if (step.do === 'cleanUp') {
    await cleanUp(run, instance);
    return { done: undefined };
  }
  const checked = { ...observed, login: checkLogin(run, observed), jupyter: checkJupyter(run, observed) };
  // A claim lives in the instance itself, so the finalizer may be written beside it.
  const [moved] = await Promise.all([takeStep(run, step, checked), progress.isHeld || hold(run, instance)]);
  if (moved === undefined || 'waiting' in moved) {
    return { done: await report(run, checked, { step, waiting: moved?.waiting, repaired }) };
  }
  // What was just granted has no pod yet; a creation that failed may have made one all the same.
  const isCertain = step.do === 'claim' || (progress.isCertain && step.do !== 'createPod');
  return { progress: { instance: moved.instance, pods: moved.pods ?? pods, isHeld: true, isCertain } };
}

/** What is seen of the instance, once its pods and its disk have their owner back. */
async function look(run: Run, { instance, pods }: Progress): Promise<{ observed: Observed; repaired: Repaired }> {
  const observed = observe(run.deps, instance, pods);
  const repaired = await repair(run, instance, observed.pods);
  const pod = repaired.pods.find(({ metadata }) => metadata.name === instance.status?.podName);
  return { observed: { ...observed, pods: repaired.pods, pod }, repaired };
}

function hold(run: Run, instance: GpuInstance): Promise<GpuInstance> {
  return writeFinalizers(run, instance, [...(instance.metadata.finalizers ?? []), FINALIZER]);
}

/** Writes what is seen to the status, and says when to look again. */
async function report(
  run: Run,
  observed: Observed,
  { step, waiting, repaired }: { step: Step; waiting: Waiting | undefined; repaired: Repaired },
): Promise<Result> {
  const writeAfterMs = await writeWhenDue(run, observed, statusOf(observed, run.deps.config.ssh, waiting));
  const next = nextLook(observed, { step, writeAfterMs, isHidden: isHidden(run, observed.pods) });
  const afterMs = Math.min(next?.requeueAfterMs ?? Infinity, repaired.againAfterMs ?? Infinity);
  return Number.isFinite(afterMs) ? { requeueAfterMs: afterMs } : undefined;
}

/** Whether a pod is there that the cache does not show: the cache would not tell of its deletion either. */
function isHidden({ deps }: Run, pods: readonly Pod[]): boolean {
  return pods.some((pod) => deps.stores.pods.get(keyOf(pod)) === undefined);
}
