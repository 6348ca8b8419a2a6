import { AlreadyExistsError, KubeError } from '../../../kube/errors.ts';
import { type KubeObject, PERSISTENT_VOLUME_CLAIMS, PODS, type ResourceType } from '../../../kube/types.ts';
import type { Ending } from '../decide/endings.ts';
import { diskFor, foundDisk, foundPod, podFor, REFUSAL_GRACE_MS, refused } from './create-pod.ts';
import type { WithStored } from './observe.ts';
import type { Run } from './run.ts';

// What the API server says of a webhook that may have side effects (admission/plugin/webhook/errors/statuserror.go).
const CANNOT_TRY = /does not support dry run/;

/**
 * Asks the API server whether it would take the disk and the pod of a start, without making them: nobody should end for
 * a start that a quota or an admission refuses. Returns the refusal; undefined where there is none, or none can be known.
 * @param observed with the claim, which is not written
 */
export async function tryStart(run: Run, observed: WithStored): Promise<Ending | undefined> {
  const { claim } = observed.instance.status ?? {};
  if (claim === undefined) throw new Error('A start would be tried without a place; this is a bug.');
  const prepared = podFor(run, observed, claim);
  if ('ending' in prepared) return prepared.ending;
  let disk: Parameters<typeof prepared.podWith>[0];
  const wanted = diskFor(run, observed, claim);
  if ('ending' in wanted) return wanted.ending;
  if ('disk' in wanted) disk = wanted.disk;
  else {
    const said = await tryCreate(run, PERSISTENT_VOLUME_CLAIMS, wanted.wanted);
    const found = said === 'exists' ? await foundDisk(run, observed) : said;
    if (found !== undefined && 'ending' in found) return found.ending;
    disk = found?.disk;
  }
  const pod = prepared.podWith(disk);
  const said = await tryCreate(run, PODS, pod);
  const found = said === 'exists' ? await foundPod(run, observed, pod) : said;
  return found !== undefined && 'ending' in found ? found.ending : undefined;
}

/** The refusal; or whether an object of this name is there already, whosever it is. */
async function tryCreate<T extends KubeObject>(
  { deps, context }: Run,
  type: ResourceType<T>,
  object: T,
): Promise<{ ending: Ending } | 'exists' | undefined> {
  try {
    await deps.client.create(type, object, { signal: context.signal, dryRun: true });
    return undefined;
  } catch (error) {
    if (error instanceof AlreadyExistsError) return 'exists';
    if (error instanceof KubeError && CANNOT_TRY.test(error.statusMessage)) return undefined;
    const now = deps.clock.now();
    // No place is held meanwhile, so nothing is gained by waiting for a webhook that may be back in a moment.
    const ending = refused(error, now - REFUSAL_GRACE_MS, now);
    if (ending === undefined) throw error;
    return { ending };
  }
}
