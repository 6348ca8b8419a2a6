import { prunePod } from '../../../caches/prune.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { everyObject } from '../../../kube/client/every.ts';
import { keyOf, type Pod, PODS } from '../../../kube/types.ts';
import { shownIn } from '../../../kube/watch/resource-version.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { slimSpec } from '../../../resources/instances/slim-spec.ts';
import { bearsClaim, firstPodOf, withClaimOf } from '../../../resources/pod/claim-on-pod.ts';
import type { ControllerStores } from '../../stores.ts';

/** A tenant may have a thousand instances, each of which has some hundred kilobytes, as has its pod. */
const PAGE = 50;

interface Deps {
  client: Pick<KubeClient, 'list'>;
  inventory: Pick<Inventory, 'assume' | 'written' | 'undecided'>;
  stores: Pick<ControllerStores, 'instances' | 'pods'>;
  config: { claimOnPod: boolean };
}

/**
 * Counts the claims of tenants as the API server has them, once in a term as the leader: the cache may not show the last
 * claims of the leader before. Those of this term the inventory knows itself.
 */
export class ClaimReads {
  readonly #deps: Deps;
  /** The one read of each namespace. */
  readonly #reads = new Map<string, Promise<void>>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Resolves when the claims of a tenant are counted. Rejects with KubeError. */
  of(namespace: string, signal: AbortSignal): Promise<void> {
    const known = this.#reads.get(namespace);
    if (known !== undefined) return known;
    const reading = this.#read(namespace, signal);
    this.#reads.set(namespace, reading);
    reading.catch(() => this.#reads.delete(namespace));
    return reading;
  }

  async #read(namespace: string, signal: AbortSignal): Promise<void> {
    const { client, inventory, stores } = this.#deps;
    const pods = await this.#readPods(namespace, signal);
    const unseen: { live: GpuInstance; claimed: GpuInstance; isShown: () => boolean }[] = [];
    for await (const instance of everyObject(client, GPU_INSTANCES, { namespace, signal, page: PAGE })) {
      const live = { ...instance, spec: slimSpec(instance.spec) };
      const pod = pods.get(keyOf({ namespace, name: firstPodOf(live) }));
      const claimed = withClaimOf(live, pod);
      if (claimed.status?.claim === undefined) continue;
      const isShown =
        claimed === live || pod === undefined ? shownIn(stores.instances, live) : shownIn(stores.pods, pod);
      if (!isShown()) unseen.push({ live, claimed, isShown });
    }
    for (const { live, claimed, isShown } of unseen) {
      const key = keyOf(live);
      const { claim, diskGb = 0, diskPersistent = false } = claimed.status ?? {};
      const isKnown = stores.instances.get(key)?.status?.claim !== undefined;
      if (claim === undefined || isKnown || inventory.undecided(key) !== undefined || isShown()) continue;
      inventory.assume(live, claim, { gb: diskGb, persistent: diskPersistent });
      inventory.written(key, isShown);
    }
  }

  /** The pods that bear claims of the tenant's instances as the API server has them, where one may be on a pod alone. */
  async #readPods(namespace: string, signal: AbortSignal): Promise<Map<string, Pod>> {
    const { client, config } = this.#deps;
    const found = new Map<string, Pod>();
    if (!config.claimOnPod) return found;
    for await (const pod of everyObject(client, PODS, { namespace, signal, page: PAGE }))
      if (bearsClaim(pod)) found.set(keyOf(pod), prunePod(pod));
    return found;
  }
}
