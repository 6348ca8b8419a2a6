import type { Logger } from 'pino';
import type { DeleteOptions, KubeClient } from '../../kube/client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { ConflictError } from '../../kube/errors.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { ObjectRef } from '../../kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../resources/gpu-instance.ts';
import type { Abandoned } from './abandoned.ts';
import { CONFIRM_BY } from '../../resources/gpu-instance.ts';

const EVERY_MS = 15_000;
/** The replica that made the instance may have another clock than this one. */
const SKEW_MS = 30_000;

export interface ReaperDeps {
  client: KubeClient;
  stores: { instances: ReadStore<GpuInstance> };
  abandoned: Abandoned;
  clock: Clock;
  log: Logger;
}

/** Whether the object, as the preconditions have it, is gone; what went wrong is logged. */
async function isGone(
  { client, log }: ReaperDeps,
  ref: ObjectRef,
  preconditions: Pick<DeleteOptions, 'uid' | 'resourceVersion'>,
): Promise<boolean> {
  const { namespace, name } = ref;
  try {
    await client.delete(GPU_INSTANCES, ref, preconditions);
    log.warn({ namespace, instance: name }, 'An instance that no client knows of is removed');
    return true;
  } catch (error) {
    if (error instanceof ConflictError) return true;
    log.warn({ err: error, instance: name }, 'An instance was not removed');
    return false;
  }
}

/**
 * Removes instances whose client never got an answer because the replica that made them died. The resource version is a
 * precondition, so an answer that is confirmed at the same moment wins. Every replica does it; the second delete finds
 * nothing. Then those that this replica could not remove before. Never rejects.
 */
export async function runReaper(deps: ReaperDeps, signal: AbortSignal): Promise<void> {
  const { stores, abandoned, clock } = deps;
  while (!signal.aborted) {
    await clock.sleep(EVERY_MS, signal);
    for (const { metadata } of stores.instances.by('unconfirmed', 'true')) {
      const due = Date.parse(metadata.annotations?.[CONFIRM_BY] ?? '');
      if (metadata.deletionTimestamp !== undefined || !(clock.now() > due + SKEW_MS)) continue;
      const { namespace, name, uid, resourceVersion } = metadata;
      const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
      await isGone(deps, { namespace, name }, preconditions);
    }
    for (const ref of abandoned.all()) {
      const { namespace, name, uid } = ref;
      if (await isGone(deps, { namespace, name }, { uid })) abandoned.removed(ref);
    }
  }
}
