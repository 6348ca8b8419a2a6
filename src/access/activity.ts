import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { NotFoundError } from '../kube/errors.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf } from '../kube/types.ts';
import { GPU_INSTANCES, LAST_ACTIVITY, type GpuInstance } from '../resources/gpu-instance.ts';

/** How exact the time of the last use is: an instance in use costs one write in this time, and one that is not none. */
const FLUSH_MS = 30_000;

/** Keeps instances that end when they are idle from ending while somebody uses them. */
export interface Activity {
  /** Somebody came; the answer is to be called once, when he has gone. */
  began(instance: { namespace: string; name: string }): () => void;
  /** Writes until the signal aborts, and once more then. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

export interface ActivityDeps {
  client: KubeClient;
  instances: ReadStore<GpuInstance>;
  clock: Clock;
  log: Logger;
}

export function createActivity({ client, instances, clock, log }: ActivityDeps): Activity {
  const open = new Map<string, number>();
  /** Used since the last write, also by those who have gone. */
  const used = new Set<string>();
  /** When the last writes were, as long as they are recent. */
  const written = new Map<string, number>();

  async function write(key: string): Promise<void> {
    const instance = instances.get(key);
    if (instance?.spec.idleTimeout === undefined || instance.metadata.deletionTimestamp !== undefined) return;
    const { namespace, name, uid } = instance.metadata;
    written.set(key, clock.monotonic());
    const annotations = { [LAST_ACTIVITY]: new Date(clock.now()).toISOString() };
    try {
      await client.patch(GPU_INSTANCES, { namespace, name }, { metadata: { uid, annotations } }, { type: 'merge' });
    } catch (error) {
      if (!(error instanceof NotFoundError)) log.warn({ err: error, instance: key }, 'Activity was not written');
    }
  }

  async function flush(): Promise<void> {
    const keys = new Set([...open.keys(), ...used]);
    used.clear();
    const now = clock.monotonic();
    for (const [key, at] of written) if (now - at >= FLUSH_MS) written.delete(key);
    for (const key of keys) await write(key);
  }

  return {
    began: (instance) => {
      const key = keyOf(instance);
      if (written.has(key)) used.add(key);
      else void write(key);
      open.set(key, (open.get(key) ?? 0) + 1);
      return () => {
        used.add(key);
        const left = (open.get(key) ?? 1) - 1;
        if (left === 0) open.delete(key);
        else open.set(key, left);
      };
    },
    run: async (signal) => {
      while (!signal.aborted) {
        await clock.sleep(FLUSH_MS, signal);
        await flush();
      }
    },
  };
}
