import type { Pod } from '../../../kube/types.ts';
import { shownIn } from '../../../kube/watch/resource-version.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { imageRefusal } from '../../../inventory/ceilings.ts';
import { type Ending, endingOf } from '../decide/endings.ts';
import { withFinish } from '../decide/finish.ts';
import type { WithStored } from './observe.ts';
import type { Observed } from '../decide/observed.ts';
import { startHashOn } from '../../../resources/pod/claim-on-pod.ts';
import type { Step } from '../decide/plan.ts';
import type { Waiting } from '../decide/status/ready.ts';
import { statusOf, withStages } from '../decide/status/status.ts';
import { endedStatus, readmittedStatus, refusedStatus, releasedStatus } from '../decide/transitions.ts';
import { recordedStatus } from '../decide/usage.ts';
import { claimPlace } from './claim.ts';
import { cleanUp, recordedStarts, writeUsageRecords } from './clean-up.ts';
import { createPod } from './create-pod.ts';
import { leaveLines, type Run } from './run.ts';
import { deletePods, writeStatus } from './writes.ts';

export type StepOutcome =
  /** The instance as the API server has it after the step, with its pods where the cache does not show them yet. */
  | { instance: GpuInstance; pods?: readonly Pod[] }
  /**
   * There is nothing more to do now; `waiting` says what the search for a place found, if there was one. `stored`: the
   * instance as the API server has it, where the step wrote to it. `offered` and `reserved`: what becomes free for it.
   */
  | ({ waiting: Waiting | undefined; stored?: GpuInstance; until?: number } & Pick<
      Observed,
      'offered' | 'reserved' | 'othersEnd'
    >)
  /** Nothing is left of the instance. */
  | { gone: true };

const NOTHING_MORE = { waiting: undefined };

export async function takeStep(run: Run, step: Step, observed: WithStored): Promise<StepOutcome> {
  const { instance, stored, settings, now } = observed;
  switch (step.do) {
    case 'claim': {
      if (settings === undefined) return NOTHING_MORE;
      const outcome = await claimPlace(run, observed, settings);
      if ('lost' in outcome) return end(run, outcome.observed, outcome.lost);
      if (!('refused' in outcome)) return outcome;
      leaveLines(run);
      return end(run, observed, outcome.refused, refusedStatus);
    }
    case 'freeze':
      return { instance: await writeStatus(run, stored, statusOf(observed, run.deps.config.ssh)) };
    case 'createPod': {
      const { claim } = instance.status ?? {};
      if (claim === undefined) return NOTHING_MORE;
      // Since the claim the instance may have been edited, or the ceilings.
      const overImages =
        settings && imageRefusal(run.deps.ceilingsOf(instance.metadata.namespace ?? ''), settings.image);
      if (overImages) return end(run, observed, { reason: 'PlaceLost', message: overImages.message });
      const outcome = await createPod(run, observed, claim);
      return 'pod' in outcome ? { instance: stored, pods: [outcome.pod] } : end(run, observed, outcome.ending);
    }
    case 'end':
      return end(run, observed, step.ending);
    case 'deleteInstance':
      await deleteInstance(run, instance);
      return NOTHING_MORE;
    case 'deletePods':
      await deletePods(run, step.pods);
      return NOTHING_MORE;
    case 'release': {
      // A container may have run for the first time after its end was decided, and be seen ended only.
      const finished = withStages({ ...observed, instance: withFinish(observed) });
      const ending = endingOf(finished.status) ?? step.ending;
      return { instance: await writeStatus(run, stored, releasedStatus(finished, ending, now)) };
    }
    case 'readmit':
      return {
        instance: await writeStatus(run, stored, readmittedStatus(instance, await recordedStarts(run, instance))),
      };
    case 'record': {
      const written = await writeUsageRecords(run, instance);
      return { instance: await writeStatus(run, stored, recordedStatus(instance, written)) };
    }
    case 'cleanUp':
      return (await cleanUp(run, instance)) ?? { gone: true };
    default:
      return NOTHING_MORE;
  }
}

async function end(
  run: Run,
  observed: WithStored,
  ending: Ending,
  statusAfter: typeof endedStatus = endedStatus,
): Promise<StepOutcome> {
  const { instance, stored, pod, now } = observed;
  const status = statusAfter(instance, ending, now, pod && startHashOn(pod));
  const next = { ...observed, instance: { ...instance, status } };
  const written = await writeStatus(run, stored, statusOf(next, run.deps.config.ssh));
  // Of a start that ended before its pod was made, no cache shows the claim yet.
  const { inventory, stores } = run.deps;
  if (inventory.undecided(run.key) !== undefined) inventory.written(run.key, shownIn(stores.instances, written));
  return { instance: written };
}

async function deleteInstance({ deps, context }: Run, { metadata }: GpuInstance): Promise<void> {
  const { namespace, name, uid = '', resourceVersion = '' } = metadata;
  await deps.client.delete(GPU_INSTANCES, { namespace, name }, { signal: context.signal, uid, resourceVersion });
}
