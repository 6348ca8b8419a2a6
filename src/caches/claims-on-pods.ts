import { keyOf, type Pod } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { sameJson } from '../lib/json.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import {
  firstPodOf,
  instanceKeyOfFirstPod,
  isBeforeFirstStart,
  storedOf,
  withClaimOf,
} from '../resources/pod/claim-on-pod.ts';

/**
 * The claims that are on pods alone: for some seconds, until the controller writes the status of the instance. With this
 * the cache of instances shows them like all others, and nobody who reads it needs to know where a claim is written.
 */
export class ClaimsOnPods {
  readonly #pods: Pick<ReadStore<Pod>, 'get' | 'onChange'>;
  /** What was read last, by the instance as the API server has it. */
  readonly #known = new WeakMap<GpuInstance, { pod: Pod; completed: GpuInstance }>();

  constructor(pods: Pick<ReadStore<Pod>, 'get' | 'onChange'>) {
    this.#pods = pods;
  }

  /** The instance with the claim that its pod bears: the same object while neither claim nor instance changes. */
  complete(instance: GpuInstance): GpuInstance {
    const stored = storedOf(instance);
    if (!isBeforeFirstStart(stored)) return stored;
    const pod = this.#pods.get(keyOf({ namespace: stored.metadata.namespace, name: firstPodOf(stored) }));
    if (pod === undefined) return stored;
    const before = this.#known.get(stored);
    if (before?.pod === pod) return before.completed;
    const read = withClaimOf(stored, pod);
    const completed = before !== undefined && sameJson(before.completed.status, read.status) ? before.completed : read;
    this.#known.set(stored, { pod, completed });
    return completed;
  }

  /** Calls `refresh` with the key of each instance whose claim may have come to its pod, or gone with it. */
  follow(refresh: (key: string) => void): void {
    this.#pods.onChange(({ key: podKey }) => {
      const key = instanceKeyOfFirstPod(podKey);
      if (key !== undefined) refresh(key);
    });
  }
}
