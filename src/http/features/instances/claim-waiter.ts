import { mayBeAnswered } from '../../../caches/line-order.ts';
import { keyOf, type ObjectRef } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState, type ReadyReason } from '../../../resources/instances/instance-state.ts';

/** What a reason means to a client whose instance has had no place yet. */
type Meaning =
  /** Nothing is decided. */
  | 'open'
  /** It waits. For a client that does not queue nothing is decided. */
  | 'waits'
  /** It waits. For a client that does not queue it is a refusal, although the controller would try again. */
  | 'noRoom'
  /** Its owner stopped it. Nothing was decided before. */
  | 'off'
  /** No start follows, or not one that the client could wait for. */
  | 'refused';

/** What it means, for every reason: also the history of an instance that is gone tells by it what its client was told. */
export const MEANINGS: Readonly<Record<ReadyReason, Meaning>> = {
  Pending: 'open',
  WaitingForCapacity: 'waits',
  PlaceComing: 'waits',
  PriceTooHigh: 'waits',
  DiskNodeGone: 'waits',
  BackingOff: 'waits',
  StartLimit: 'waits',
  QuotaExceeded: 'noRoom',
  NetworkOpen: 'noRoom',
  TenantLimit: 'noRoom',
  BudgetExceeded: 'noRoom',
  PodRejected: 'noRoom',
  // Offers and templates come, and clients send ids that none ever had: one without them has nothing to wait for.
  WaitingForOffer: 'refused',
  NamespaceTerminating: 'refused',
  TemplateNotFound: 'refused',
  TemplateTooLarge: 'refused',
  NoCapacity: 'refused',
  OfferNotFound: 'refused',
  OfferChanged: 'refused',
  DiskTooLarge: 'refused',
  DiskLost: 'refused',
  ImagePullFailed: 'refused',
  InvalidImage: 'refused',
  ForbiddenEnv: 'refused',
  ForbiddenRoot: 'refused',
  ForbiddenRuntimeClass: 'refused',
  NotATenant: 'refused',
  ContainerFailed: 'refused',
  NameConflict: 'refused',
  Stopped: 'off',
  // An instance with these has had a place, or has it on its pod.
  Scheduling: 'open',
  Unschedulable: 'open',
  PullingImage: 'open',
  ImagePullBackOff: 'open',
  Starting: 'open',
  WaitingForLogin: 'open',
  CrashLoop: 'open',
  Running: 'open',
  Stopping: 'open',
  Expired: 'open',
  Idle: 'open',
  BudgetSpent: 'open',
  Completed: 'open',
  Preempted: 'open',
  GPUUnhealthy: 'open',
  NodeLost: 'open',
  Deleting: 'open',
};

/**
 * What the controller decided about a new instance; `queued` when it waits for its place, as the client wants or because
 * others end for it.
 */
export type Decision = 'granted' | 'queued' | 'refused' | 'gone';

/**
 * The decision about an instance; undefined as long as there is none. The controller counts the incarnation with the
 * grant of the place, and never counts back: an instance that has failed or stopped since was granted too.
 */
export function decisionOf(instance: GpuInstance): Decision | undefined {
  if (instance.metadata.deletionTimestamp !== undefined) return 'gone';
  if ((instance.status?.incarnation ?? 0) > 0) return 'granted';
  if (mayBeAnswered(instance)) return 'queued';
  const queues = instance.spec.onNoCapacity === 'Queue';
  switch (MEANINGS[instanceState(instance).reason]) {
    case 'refused':
      return 'refused';
    // The controller tries again when there is room. A client that does not queue gets its refusal now.
    case 'noRoom':
      return queues ? 'queued' : 'refused';
    case 'waits':
      return queues ? 'queued' : undefined;
    default:
      return undefined;
  }
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal;
  /** True for decisions that may still change by themselves, and are waited out. */
  isPassing?: (instance: GpuInstance) => boolean;
}

export interface WaitResult {
  /** `timeout` when nothing was decided in time. */
  decision: Decision | 'timeout';
  instance: GpuInstance | undefined;
}

/** What there is of an instance, and what there was before. */
type Listener = (instance: GpuInstance | undefined, before: GpuInstance | undefined) => void;

/** Waits on the watch cache, with one listener for all requests: a change costs the same however many wait. */
export class ClaimWaiter {
  readonly #store: ReadStore<GpuInstance>;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Listener>>();
  readonly #stop: () => void;

  constructor(store: ReadStore<GpuInstance>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#stop = store.onChange(({ key, before, after }) => {
      for (const listener of this.#waiting.get(key) ?? []) listener(after, before);
    });
  }

  async decision(ref: ObjectRef & { uid: string }, options: WaitOptions): Promise<WaitResult> {
    let instance: GpuInstance | undefined;
    const check = (seen: GpuInstance | undefined, before?: GpuInstance): Decision | undefined => {
      // The cache may not have the new object yet, or still have an earlier one of the same name, which goes first.
      if (seen === undefined) return before?.metadata.uid === ref.uid ? 'gone' : undefined;
      if (seen.metadata.uid !== ref.uid) return undefined;
      instance = seen;
      return options.isPassing?.(instance) ? undefined : decisionOf(instance);
    };
    const decision = await this.#until(ref, check, options);
    return { decision: decision ?? 'timeout', instance };
  }

  /** Waits until there is no instance of this name; false when the time is over first. */
  async removal(ref: ObjectRef, options: WaitOptions): Promise<boolean> {
    return (await this.#until(ref, (seen) => (seen === undefined ? true : undefined), options)) ?? false;
  }

  close(): void {
    this.#stop();
  }

  /** Calls `check` now and after each change until it returns a value; undefined when the time is over first. */
  #until<T>(
    ref: ObjectRef,
    check: (instance: GpuInstance | undefined, before?: GpuInstance) => T | undefined,
    { timeoutMs, signal }: WaitOptions,
  ): Promise<T | undefined> {
    const key = keyOf(ref);
    return new Promise((resolve) => {
      const first = check(this.#store.get(key));
      if (first !== undefined || signal?.aborted) return resolve(first);
      const finish = (value: T | undefined): void => {
        remove();
        cancel();
        signal?.removeEventListener('abort', stop);
        resolve(value);
      };
      const stop = (): void => finish(undefined);
      const remove = this.#add(key, (...seen) => {
        const value = check(...seen);
        if (value !== undefined) finish(value);
      });
      const cancel = this.#clock.setTimeout(stop, timeoutMs);
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  #add(key: string, listener: Listener): () => void {
    const listeners = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#waiting.delete(key);
    };
  }
}
