import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeError, NotFoundError } from '../kube/errors.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, LEASES } from '../kube/types.ts';
import {
  activityLeaseOf,
  type ActivityRole,
  replicaKey,
  REPORTED_AT,
  reportText,
} from '../resources/activity-lease.ts';
import { GPU_INSTANCES, LAST_ACTIVITY, type GpuInstance } from '../resources/instances/gpu-instance.ts';

/** How exact the time of the last use is: an instance in use costs one write in this time, an idle one none. */
const FLUSH_MS = 30_000;

export interface ActivityDeps {
  client: KubeClient;
  instances: ReadStore<GpuInstance>;
  clock: Clock;
  log: Logger;
  /** Berth's own. */
  namespace: string;
  role: ActivityRole;
  /** Different for every process. */
  id: string;
}

/**
 * Writes when instances were last used, and until when it has written all that this replica knows: spec.idleTimeout must
 * not end an instance in use.
 */
export class Activity {
  readonly #deps: ActivityDeps;
  /** How many sessions or requests each instance has now. */
  readonly #open = new Map<string, number>();
  /** Instances used since the last write, also by sessions that have ended. */
  readonly #used = new Set<string>();
  /** When this process last wrote for an instance, monotonic; entries older than {@link FLUSH_MS} go. */
  readonly #written = new Map<string, number>();
  readonly #since: number;

  constructor(deps: ActivityDeps) {
    this.#deps = deps;
    this.#since = deps.clock.now();
  }

  /** A session or a request began; the caller calls the returned function once, at its end. */
  began(instance: { namespace: string; name: string }): () => void {
    const key = keyOf(instance);
    if (this.#written.has(key)) this.#used.add(key);
    else void this.#write(key);
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    return () => {
      this.#used.add(key);
      const left = (this.#open.get(key) ?? 1) - 1;
      if (left === 0) this.#open.delete(key);
      else this.#open.set(key, left);
    };
  }

  /** Writes until the signal aborts, and once more then. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    // Of instances without idleTimeout nobody wants to know. When one gets it, its sessions are told at once.
    const unfollow = this.#deps.instances.onChange(({ key, before, after }) => {
      const isNew = after?.spec.idleTimeout !== before?.spec.idleTimeout;
      if (isNew && this.#open.has(key)) void this.#write(key);
    });
    let isWritten = await this.#flush();
    while (!signal.aborted) {
      await this.#deps.clock.sleep(FLUSH_MS, signal);
      isWritten = await this.#flush();
    }
    unfollow();
    // Its last sessions are written, so nobody has to wait for it.
    if (isWritten) await this.#report(undefined);
  }

  /** Returns whether all that was known is written. */
  async #flush(): Promise<boolean> {
    const { clock, instances } = this.#deps;
    const report = { since: this.#since, until: clock.now(), version: instances.resourceVersion };
    const keys = new Set([...this.#open.keys(), ...this.#used]);
    this.#used.clear();
    const now = clock.monotonic();
    for (const [key, at] of this.#written) if (now - at >= FLUSH_MS) this.#written.delete(key);
    let isWritten = true;
    for (const key of keys) isWritten = (await this.#write(key)) && isWritten;
    if (isWritten) await this.#report(reportText(report));
    return isWritten;
  }

  /** False when it must be tried again. */
  async #write(key: string): Promise<boolean> {
    const { client, instances, clock, log } = this.#deps;
    const instance = instances.get(key);
    if (instance?.spec.idleTimeout === undefined || instance.metadata.deletionTimestamp !== undefined) return true;
    const { namespace, name, uid } = instance.metadata;
    this.#written.set(key, clock.monotonic());
    const annotations = { [LAST_ACTIVITY]: new Date(clock.now()).toISOString() };
    try {
      await client.patch(GPU_INSTANCES, { namespace, name }, { metadata: { uid, annotations } }, { type: 'merge' });
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return true;
      log.warn({ err: error, instance: key }, 'Activity was not written');
      // What its owner wrote there may have no room for more. All others must not wait for it.
      if (isFinal(error)) return true;
      this.#used.add(key);
      return false;
    }
  }

  /** Notes what this replica has written; with undefined that it serves nobody any more. */
  async #report(text: string | undefined): Promise<void> {
    const { client, namespace, role, id, clock, log } = this.#deps;
    const name = activityLeaseOf(role);
    const annotations = { [replicaKey(id)]: text ?? null, [REPORTED_AT]: new Date(clock.now()).toISOString() };
    try {
      await client.patch(LEASES, { namespace, name }, { metadata: { annotations } }, { type: 'merge' });
    } catch (error) {
      // The leader makes the Lease; a leader of an earlier release makes none.
      if (!(error instanceof NotFoundError)) log.warn({ err: error }, 'The use of instances was not reported');
    }
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof KubeError && [400, 403, 413, 422].includes(error.status);
}
