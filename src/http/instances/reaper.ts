import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../kube/clock.ts';
import { ConflictError } from '../../kube/errors.ts';
import type { ReadStore } from '../../kube/store.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../resources/gpu-instance.ts';
import { CONFIRM_BY } from './annotations.ts';

const EVERY_MS = 15_000;
/** The replica that made the instance may have another clock than this one. */
const SKEW_MS = 30_000;

export interface ReaperDeps {
  client: KubeClient;
  stores: { instances: ReadStore<GpuInstance> };
  clock: Clock;
  log: Logger;
}

/**
 * Removes instances whose client never got an answer because the replica that made them died. The resource version is a
 * precondition, so an answer that is confirmed at the same moment wins. Every replica does it; the second delete finds
 * nothing. Never rejects.
 */
export async function runReaper(deps: ReaperDeps, signal: AbortSignal): Promise<void> {
  const { client, stores, clock, log } = deps;
  while (!signal.aborted) {
    await clock.sleep(EVERY_MS, signal);
    for (const { metadata } of stores.instances.by('unconfirmed', 'true')) {
      const due = Date.parse(metadata.annotations?.[CONFIRM_BY] ?? '');
      if (metadata.deletionTimestamp !== undefined || !(clock.now() > due + SKEW_MS)) continue;
      const { namespace, name, uid, resourceVersion } = metadata;
      const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
      try {
        await client.delete(GPU_INSTANCES, { namespace, name }, preconditions);
        log.warn({ namespace, instance: name }, 'An instance that no client knows of is removed');
      } catch (error) {
        if (!(error instanceof ConflictError)) log.warn({ err: error, instance: name }, 'An instance was not removed');
      }
    }
  }
}
