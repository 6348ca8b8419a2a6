import type { Inventory } from '../../../inventory/inventory.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { keyOf, type Pod, PODS } from '../../../kube/types.ts';
import { shownIn } from '../../../kube/watch/resource-version.ts';
import { GPU_INSTANCES } from '../../../resources/instances/gpu-instance.ts';
import { firstPodOf, withClaimOf } from '../../../resources/pod/claim-on-pod.ts';
import { INSTANCE_UID_LABEL } from '../../../resources/pod/owner.ts';
import type { ControllerStores } from '../../stores.ts';

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
    const { items } = await client.list(GPU_INSTANCES, { namespace, signal });
    const pods = await this.#readPods(namespace, signal);
    for (const live of items) {
      const key = keyOf(live);
      const pod = pods.get(keyOf({ namespace, name: firstPodOf(live) }));
      const claimed = withClaimOf(live, pod);
      const { claim, diskGb = 0, diskPersistent = false } = claimed.status ?? {};
      const isKnown = stores.instances.get(key)?.status?.claim !== undefined;
      if (claim === undefined || isKnown || inventory.undecided(key) !== undefined) continue;
      const isShown =
        claimed === live || pod === undefined ? shownIn(stores.instances, live) : shownIn(stores.pods, pod);
      if (isShown()) continue;
      inventory.assume(live, claim, { gb: diskGb, persistent: diskPersistent });
      inventory.written(key, isShown);
    }
  }

  /** The pods of the tenant's instances as the API server has them, where a claim may be on one alone. */
  async #readPods(namespace: string, signal: AbortSignal): Promise<Map<string, Pod>> {
    const { client, config } = this.#deps;
    if (!config.claimOnPod) return new Map();
    const { items } = await client.list(PODS, { namespace, labelSelector: INSTANCE_UID_LABEL, signal });
    return new Map(items.map((pod) => [keyOf(pod), pod]));
  }
}
