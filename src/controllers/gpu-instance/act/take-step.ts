import type { Pod } from '../../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Ending } from '../decide/endings.ts';
import type { Observed } from '../decide/observed.ts';
import type { Step } from '../decide/plan.ts';
import type { Waiting } from '../decide/status/ready.ts';
import { statusOf } from '../decide/status/status.ts';
import { endedStatus, releasedStatus } from '../decide/transitions.ts';
import { claimPlace } from './claim.ts';
import { createPod } from './create-pod.ts';
import type { Run } from './run.ts';
import { deletePods, switchOff, writeStatus } from './writes.ts';

/** The instance after a step. */
interface Moved {
  instance: GpuInstance;
  /** The pods, where the step made or found one that the cache does not show yet. */
  pods?: readonly Pod[];
}

/** Takes one step. `undefined`: this run has nothing more to do than to report what is seen. */
export async function takeStep(
  run: Run,
  step: Step,
  observed: Observed,
): Promise<Moved | { waiting: Waiting } | undefined> {
  const { instance, settings, now } = observed;
  switch (step.do) {
    case 'claim': {
      if (settings === undefined) return undefined;
      const outcome = await claimPlace(run, observed, settings);
      if (!('refused' in outcome)) return outcome;
      run.deps.line.remove(run.key);
      return end(run, observed, outcome.refused);
    }
    case 'createPod': {
      const { claim } = instance.status ?? {};
      if (claim === undefined) return undefined;
      const outcome = await createPod(run, observed, claim);
      return 'pod' in outcome ? { instance, pods: [outcome.pod] } : end(run, observed, outcome.ending);
    }
    case 'end':
      return end(run, observed, step.ending);
    case 'switchOff':
      return { instance: await switchOff(run, instance) };
    case 'deleteInstance':
      await deleteInstance(run, instance);
      return undefined;
    case 'deletePods':
      await deletePods(run, step.pods);
      return undefined;
    case 'release':
      return { instance: await writeStatus(run, instance, releasedStatus(instance, step.ending, now)) };
    default:
      return undefined;
  }
}

async function end(run: Run, observed: Observed, ending: Ending): Promise<Moved> {
  const { instance, now } = observed;
  const next = { ...observed, instance: { ...instance, status: endedStatus(instance, ending, now) } };
  return { instance: await writeStatus(run, instance, statusOf(next, run.deps.config.ssh)) };
}

async function deleteInstance({ deps, context }: Run, { metadata }: GpuInstance): Promise<void> {
  const { namespace, name, uid = '', resourceVersion = '' } = metadata;
  await deps.client.delete(GPU_INSTANCES, { namespace, name }, { signal: context.signal, uid, resourceVersion });
}
