import type { Pod } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import {
  CLAIM_ANNOTATION,
  claimReader,
  instanceKeyOfFirstPod,
  isBeforeFirstStart,
} from '../../../resources/pod/claim-on-pod.ts';

interface ClaimStores {
  instances: ReadStore<GpuInstance>;
  pods: ReadStore<Pod>;
}

function claimOf(pod: Pod | undefined): string | undefined {
  return pod?.metadata.annotations?.[CLAIM_ANNOTATION];
}

/** The claims that are on pods alone: for some seconds, until the controller writes the status of the instance. */
export class ClaimsOnPods {
  readonly #stores: ClaimStores;
  readonly #isOn: boolean;
  readonly #read: (instance: GpuInstance) => GpuInstance;

  /** @param isOn whether there are any: only where admission keeps others from writing them */
  constructor(stores: ClaimStores, isOn: boolean) {
    this.#stores = stores;
    this.#isOn = isOn;
    this.#read = isOn ? claimReader(stores.pods) : (instance) => instance;
  }

  /** The instance with its claim, also while that is on its pod alone. */
  with(instance: GpuInstance): GpuInstance {
    return this.#read(instance);
  }

  /** Calls the listener with each instance of which a claim came to its pod, or went with it. Returns what ends this. */
  onChange(listener: (key: string, instance: GpuInstance) => void): () => void {
    if (!this.#isOn) return () => undefined;
    const { instances, pods } = this.#stores;
    return pods.onChange(({ key: podKey, before, after }) => {
      if (claimOf(before) === claimOf(after)) return;
      const key = instanceKeyOfFirstPod(podKey);
      const stored = key === undefined ? undefined : instances.get(key);
      if (key !== undefined && stored !== undefined && isBeforeFirstStart(stored)) listener(key, this.with(stored));
    });
  }
}
