import { keyOf, type Pod } from '../../../kube/types.ts';
import { FINALIZER } from '../../../resources/cleanup.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { Result } from '../../../runtime/controller.ts';
import { nextLook, passingForMs } from '../decide/next-look.ts';
import { mustBeCertain, planNext, type Step } from '../decide/plan.ts';
import type { Waiting } from '../decide/status/ready.ts';
import { startTimes } from '../decide/status/stage-times.ts';
import { statusOf } from '../decide/status/status.ts';
import { checkJupyter, checkLogin, checkMonitor, checkTrouble, keepsLog } from './check-pod.ts';
import { readLiveView } from './live-view.ts';
import { observe, type WithStored } from './observe.ts';
import { repair } from './repair.ts';
import { leaveLines, type Run } from './run.ts';
import { type StepOutcome, takeStep } from './take-step.ts';
import { writeFinalizers, writeStatus } from './writes.ts';

/** What a run knows of its instance. */
export interface Progress {
  /** As the API server has it. */
  instance: GpuInstance;
  /** The pods of the instance; undefined while the run knows no more of them than the cache. */
  pods: readonly Pod[] | undefined;
  hasFinalizer: boolean;
  /** Whether instance and pods come from the API server, not from a cache that may be behind. */
  isCertain: boolean;
}

/** Steps of one run; more would be a circle. */
const MAX_STEPS = 12;

/** Takes one step after the other until there is nothing left to do now. */
export async function walk(run: Run, first: Progress): Promise<Result> {
  let progress = first;
  for (let count = 0; count < MAX_STEPS; count += 1) {
    const next = await advance(run, progress);
    if ('result' in next) return next.result;
    progress = next;
  }
  throw new Error('The controller took one step after the other without an end; this is a bug.');
}

/** Looks at the instance and does one thing about it. */
async function advance(run: Run, progress: Progress): Promise<Progress | { result: Result }> {
  const seen = observe(run.deps, progress.instance, progress.pods);
  const { observed: repaired, repairAfterMs } = await repair(run, seen);
  const [monitor, trouble] = [checkMonitor(run, repaired), checkTrouble(run, repaired)];
  const observed = { ...repaired, monitor, trouble, keepsLog: keepsLog(run, repaired) };
  const step = planNext(observed);
  const known = { ...progress, pods: observed.pods };
  if (step.do !== 'claim') {
    leaveLines(run);
    // A claim of which it is not known whether it came to be, of an instance that asks for none any more.
    if (run.deps.inventory.undecided(run.key) !== undefined) run.deps.inventory.forget(run.key);
    if (!known.hasFinalizer) return { ...known, instance: await addFinalizer(run, known.instance), hasFinalizer: true };
  }
  if (mustBeCertain(step) && !known.isCertain) {
    const live = await readLiveView(run, known.instance, known.pods);
    return live === undefined ? { result: undefined } : { ...known, ...live, isCertain: true };
  }
  const checked = { ...observed, login: checkLogin(run, observed), jupyter: checkJupyter(run, observed) };
  const outcome = await takeStepWithFinalizer(run, step, { observed: checked, hasFinalizer: known.hasFinalizer });
  if ('gone' in outcome) return { result: undefined };
  if ('waiting' in outcome) {
    const { waiting, until, stored = checked.stored, offered = checked.offered, reserved, othersEnd } = outcome;
    const seenNow = { ...checked, stored, offered, reserved, othersEnd };
    return { result: await report(run, seenNow, { step, waiting, until, repairAfterMs }) };
  }
  // An instance that was just granted a place has no pod. A pod may exist although its creation failed.
  const isCertain = step.do === 'claim' || (known.isCertain && step.do !== 'createPod');
  return { instance: outcome.instance, pods: outcome.pods ?? known.pods, hasFinalizer: true, isCertain };
}

// Takes a step, and writes a missing finalizer beside it. Waits for both, also when one fails: if the run ended while
// the claim is being written, the next run could grant the same place to another instance.
async function takeStepWithFinalizer(
  run: Run,
  step: Step,
  { observed, hasFinalizer }: { observed: WithStored; hasFinalizer: boolean },
): Promise<StepOutcome> {
  const adding = hasFinalizer ? undefined : addFinalizer(run, observed.stored);
  const taking = takeStep(run, step, observed);
  await Promise.allSettled([adding, taking]);
  const outcome = await taking;
  await adding;
  return outcome;
}

function addFinalizer(run: Run, instance: GpuInstance): Promise<GpuInstance> {
  return writeFinalizers(run, instance, [...(instance.metadata.finalizers ?? []), FINALIZER]);
}

interface Reported {
  step: Step;
  /** What the search for a place found, and when to look again although nothing changes. */
  waiting: Waiting | undefined;
  until: number | undefined;
  repairAfterMs: number | undefined;
}

/** Writes what is seen to the status, unless it will soon change again. Returns when to look again. */
async function report(
  run: Run,
  observed: WithStored,
  { step, waiting, until, repairAfterMs }: Reported,
): Promise<Result> {
  const status = statusOf(observed, run.deps.config.ssh, waiting);
  const isOnPod = observed.stored.status?.claim === undefined;
  const writeAfterMs = passingForMs(observed, { status, isOnPod });
  if (writeAfterMs === 0) {
    await writeStatus(run, observed.stored, status);
    run.deps.noteStages(startTimes(observed.instance.status, status, observed.pod));
  }
  return nextLook(observed, { step, until, writeAfterMs, repairAfterMs, isHidden: hasHiddenPod(run, observed.pods) });
}

/** Whether there is a pod that the cache does not show: the cache would not report its deletion either. */
function hasHiddenPod({ deps }: Run, pods: readonly Pod[]): boolean {
  return pods.some((pod) => deps.stores.pods.get(keyOf(pod)) === undefined);
}
