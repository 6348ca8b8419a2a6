import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { NotFoundError } from '../kube/errors.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf } from '../kube/types.ts';
import { GPU_INSTANCES, LAST_ACTIVITY, type GpuInstance } from '../resources/instances/gpu-instance.ts';

/** How exact the time of the last use is: an instance in use costs one write in this time, an idle one none. */
const FLUSH_MS = 30_000;

export interface ActivityDeps {
  client: KubeClient;
  instances: ReadStore<GpuInstance>;
  clock: Clock;
  log: Logger;
}

/** Writes when instances were last used: spec.idleTimeout must not end an instance in use. */
export class Activity {
  readonly #deps: ActivityDeps;
  /** How many sessions or requests each instance has now. */
  readonly #open = new Map<string, number>();
  /** Instances used since the last write, also by sessions that have ended. */
  readonly #used = new Set<string>();
  /** When this process last wrote for an instance, monotonic; entries older than {@link FLUSH_MS} go. */
  readonly #written = new Map<string, number>();

  constructor(deps: ActivityDeps) {
    this.#deps = deps;
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
    while (!signal.aborted) {
      await this.#deps.clock.sleep(FLUSH_MS, signal);
      await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    const keys = new Set([...this.#open.keys(), ...this.#used]);
    this.#used.clear();
    const now = this.#deps.clock.monotonic();
    for (const [key, at] of this.#written) if (now - at >= FLUSH_MS) this.#written.delete(key);
    for (const key of keys) await this.#write(key);
  }

  async #write(key: string): Promise<void> {
    const { client, instances, clock, log } = this.#deps;
    const instance = instances.get(key);
    if (instance?.spec.idleTimeout === undefined || instance.metadata.deletionTimestamp !== undefined) return;
    const { namespace, name, uid } = instance.metadata;
    this.#written.set(key, clock.monotonic());
    const annotations = { [LAST_ACTIVITY]: new Date(clock.now()).toISOString() };
    try {
      await client.patch(GPU_INSTANCES, { namespace, name }, { metadata: { uid, annotations } }, { type: 'merge' });
    } catch (error) {
      if (!(error instanceof NotFoundError)) log.warn({ err: error, instance: key }, 'Activity was not written');
    }
  }
}
