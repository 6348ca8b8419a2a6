import type { Clock } from '../../lib/clock.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { keyOf, type ObjectRef } from '../../kube/types.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import { instanceState } from '../../resources/instance-state.ts';

/** What the controller decided about a new instance. */
export type Decision = 'granted' | 'refused' | 'gone';

/**
 * What is known of one instance by its status alone; undefined while nothing is decided. A grant is counted together
 * with the claim and stays counted: an instance that failed or was stopped since was granted all the same.
 */
export function decisionOf(instance: GpuInstance): Decision | undefined {
  if (instance.metadata.deletionTimestamp !== undefined) return 'gone';
  if ((instance.status?.incarnation ?? 0) > 0) return 'granted';
  const { state, reason } = instanceState(instance);
  // The controller would try again when the quota has room; a client that does not queue wants its no now.
  const isOverQuota = reason === 'QuotaExceeded' && instance.spec.onNoCapacity === 'Fail';
  return state === 'failed' || isOverQuota ? 'refused' : undefined;
}

export interface Waited {
  /** `timeout` when nothing was decided in time. */
  decision: Decision | 'timeout';
  instance: GpuInstance | undefined;
}

export interface ClaimWaiter {
  /** Waits for the decision about the instance with this uid. */
  decision(ref: ObjectRef & { uid: string }, options: { timeoutMs: number; signal?: AbortSignal }): Promise<Waited>;
  /** Waits until no instance of this name is there; false when it takes too long. */
  removal(ref: ObjectRef, options: { timeoutMs: number; signal?: AbortSignal }): Promise<boolean>;
  close(): void;
}

type Listener = (instance: GpuInstance | undefined) => void;

/** Waits on the watch cache: one listener for all, so that a change costs the same however many wait. */
export function createClaimWaiter(store: ReadStore<GpuInstance>, clock: Clock): ClaimWaiter {
  const waiting = new Map<string, Set<Listener>>();
  const close = store.onChange(({ key, after }) => {
    for (const listener of waiting.get(key) ?? []) listener(after);
  });

  function add(key: string, listener: Listener): () => void {
    const listeners = waiting.get(key) ?? new Set();
    waiting.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) waiting.delete(key);
    };
  }

  /** Looks now and after each change; `look` returns undefined to wait on. */
  function until<T>(
    ref: ObjectRef,
    look: (instance: GpuInstance | undefined, first: boolean) => T | undefined,
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<T | undefined> {
    const key = keyOf(ref);
    return new Promise((resolve) => {
      const cleanups: (() => void)[] = [];
      const finish = (value: T | undefined): void => {
        for (const cleanup of cleanups) cleanup();
        resolve(value);
      };
      const stop = (): void => finish(undefined);
      const now = look(store.get(key), true);
      if (now !== undefined || options.signal?.aborted) return finish(now);
      const remove = add(key, (instance) => {
        const value = look(instance, false);
        if (value !== undefined) finish(value);
      });
      options.signal?.addEventListener('abort', stop, { once: true });
      const cancel = clock.setTimeout(stop, options.timeoutMs);
      cleanups.push(remove, cancel, () => options.signal?.removeEventListener('abort', stop));
    });
  }

  return {
    async decision(ref, options) {
      let instance: GpuInstance | undefined;
      const look = (seen: GpuInstance | undefined, first: boolean): Decision | undefined => {
        // At first the cache may not have the new object yet; a predecessor of the same name is not it.
        if (seen === undefined) return first ? undefined : 'gone';
        if (seen.metadata.uid !== ref.uid) return undefined;
        instance = seen;
        return decisionOf(seen);
      };
      const decision = await until(ref, look, options);
      return { decision: decision ?? 'timeout', instance };
    },
    async removal(ref, options) {
      return (await until(ref, (seen) => (seen === undefined ? true : undefined), options)) ?? false;
    },
    close,
  };
}
