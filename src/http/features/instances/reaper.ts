import type { Logger } from 'pino';
import { doOthersEnd } from '../../../caches/line-order.ts';
import type { DeleteOptions, KubeClient } from '../../../kube/client/client.ts';
import { ConflictError } from '../../../kube/errors.ts';
import { keyOf, type ObjectRef } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';

const EVERY_MS = 5_000;
/** Within this time of the creation the replica that creates an instance answers its client, or removes the instance. */
export const CONFIRM_MS = 30_000;
/** Only an API server that fails for long leaves so many; beyond them the oldest are given up. */
const MAX_PENDING = 1000;

/** An instance and no other of the same name. */
export type InstanceRef = ObjectRef & { uid: string };

/** Instances that no client knows of and that this replica could not delete, perhaps without the annotation for it. */
export class PendingRemovals {
  readonly #refs = new Map<string, InstanceRef>();

  add(ref: InstanceRef): void {
    this.#refs.set(ref.uid, ref);
    const [oldest = ''] = this.#refs.keys();
    if (this.#refs.size > MAX_PENDING) this.#refs.delete(oldest);
  }

  removed({ uid }: InstanceRef): void {
    this.#refs.delete(uid);
  }

  all(): readonly InstanceRef[] {
    return [...this.#refs.values()];
  }
}

export interface ReaperDeps {
  client: KubeClient;
  stores: { instances: ReadStore<GpuInstance> };
  removals: PendingRemovals;
  clock: Clock;
  log: Logger;
}

/** Deletes the instance as the preconditions have it. False when that failed, which is logged. */
async function remove(
  { client, log }: ReaperDeps,
  ref: ObjectRef,
  preconditions: Pick<DeleteOptions, 'uid' | 'resourceVersion'>,
): Promise<boolean> {
  const { namespace, name } = ref;
  try {
    await client.delete(GPU_INSTANCES, ref, preconditions);
    log.warn({ namespace, instance: name }, 'Removed an instance that no client knows of');
    return true;
  } catch (error) {
    if (error instanceof ConflictError) return true;
    log.warn({ err: error, instance: name }, 'Failed to remove an instance that no client knows of');
    return false;
  }
}

/** How long this replica has seen instances without an answer, by its own clock: that of their creator may be another. */
class Unanswered {
  readonly #deps: ReaperDeps;
  /** Monotonic milliseconds, by uid. */
  #seenAt = new Map<string, number>();

  constructor(deps: ReaperDeps) {
    this.#deps = deps;
  }

  /** Those that are due now. Call it again and again. */
  due(): GpuInstance[] {
    const { clock, stores } = this.#deps;
    const now = clock.monotonic();
    const all = stores.instances
      .by('unconfirmed', 'true')
      .filter((instance) => instance.metadata.deletionTimestamp === undefined && !doOthersEnd(instance));
    const uidOf = ({ metadata }: GpuInstance): string => metadata.uid ?? '';
    this.#seenAt = new Map(all.map((instance) => [uidOf(instance), this.#seenAt.get(uidOf(instance)) ?? now]));
    return all.filter((instance) => now - (this.#seenAt.get(uidOf(instance)) ?? now) >= CONFIRM_MS);
  }
}

/**
 * Removes instances whose client never got an answer because the replica that created them died. The resource version is
 * a precondition: an answer that is confirmed at the same moment wins. Every replica does this; the second delete finds
 * nothing. Then it removes what this replica could not delete before. One that others end for is left until it has its
 * place. Never rejects.
 */
export async function runReaper(deps: ReaperDeps, signal: AbortSignal): Promise<void> {
  const { removals, clock } = deps;
  const unanswered = new Unanswered(deps);
  while (!signal.aborted) {
    await clock.sleep(EVERY_MS, signal);
    for (const { metadata } of unanswered.due()) {
      const { namespace, name, uid, resourceVersion } = metadata;
      await remove(deps, { namespace, name }, { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) });
    }
    for (const ref of removals.all()) {
      const { namespace, name, uid } = ref;
      const seen = deps.stores.instances.get(keyOf(ref));
      if (seen?.metadata.uid === uid && doOthersEnd(seen)) continue;
      if (await remove(deps, { namespace, name }, { uid })) removals.removed(ref);
    }
  }
}
