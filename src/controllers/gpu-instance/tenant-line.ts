import type { KubeClient } from '../../kube/client/client.ts';
import { hasReached } from '../../kube/watch/resource-version.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { keyOf, type KubeObject, type Pod, PODS } from '../../kube/types.ts';
import { gpuRefusal } from '../../inventory/gpu-ceilings.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { compareRanks } from '../../caches/line-order.ts';
import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { firstPodOf, withClaimOf } from '../../resources/pod/claim-on-pod.ts';
import { INSTANCE_UID_LABEL } from '../../resources/pod/owner.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { ControllerStores } from '../stores.ts';
import type { LimitOf } from '../tenants/tenant-ceilings.ts';

interface Deps {
  client: Pick<KubeClient, 'list'>;
  inventory: Pick<Inventory, 'heldBy' | 'onRelease' | 'assume' | 'written' | 'writtenOnPod' | 'undecided'>;
  stores: Pick<ControllerStores, 'instances' | 'pods' | 'tenantLimits' | 'namespaces'>;
  ceilingsOf: LimitOf;
  /** An instance of the cache with its claim, also while that is on its pod alone. */
  withClaim: (instance: GpuInstance) => GpuInstance;
  config: { claimOnPod: boolean };
}

interface Waiter {
  instance: GpuInstance;
  wanted: GpuShare | undefined;
}

/** Whether a cache is as new as this object. */
function isSeen<T extends KubeObject>(store: ReadStore<T>, object: T): boolean {
  const seen = store.get(keyOf(object))?.metadata.resourceVersion ?? store.resourceVersion;
  return hasReached(seen, object.metadata.resourceVersion ?? '');
}

/**
 * The instances that a ceiling of their tenant refused. A claim that the tenant gives back wakes those of them that then
 * have room, the oldest first; a change of its TenantLimit wakes them all. Other tenants are never looked at.
 */
export class TenantLine {
  readonly #deps: Deps;
  /** By namespace, then by key. */
  readonly #waiters = new Map<string, Map<string, Waiter>>();
  /** By namespace: the one read of its claims in this term as the leader. */
  readonly #reads = new Map<string, Promise<void>>();
  #wake: AddKey | undefined;

  readonly source: Source;

  constructor(deps: Deps) {
    const { inventory, stores } = deps;
    this.#deps = deps;
    this.source = {
      synced: stores.tenantLimits.synced,
      start: (add) => {
        this.#wake = add;
        const stops = [
          inventory.onRelease((namespace) => this.serve(namespace)),
          stores.tenantLimits.onChange(({ before, after }) => {
            const { namespace = '' } = (after ?? before)?.metadata ?? {};
            this.wakeAll(namespace);
          }),
          // The ceilings of a namespace are not known before its labels.
          stores.namespaces.onChange(({ key, before }) => {
            if (before === undefined) this.wakeAll(key);
          }),
        ];
        return () => {
          this.#wake = undefined;
          for (const stop of stops) stop();
        };
      },
    };
  }

  /** @param wanted the GPUs that there was no room for; undefined when no release of GPUs can help */
  add(key: string, instance: GpuInstance, wanted: GpuShare | undefined): void {
    const { namespace = '' } = instance.metadata;
    const waiters = this.#waiters.get(namespace) ?? new Map<string, Waiter>();
    this.#waiters.set(namespace, waiters.set(key, { instance, wanted }));
  }

  remove(key: string): void {
    const namespace = key.slice(0, Math.max(0, key.indexOf('/')));
    const waiters = this.#waiters.get(namespace);
    if (waiters?.delete(key) && waiters.size === 0) this.#waiters.delete(namespace);
  }

  /** Wakes the instances of a tenant that its GPU ceilings have room for now, as far as they have room together. */
  serve(namespace: string): void {
    const waiters = this.#waiters.get(namespace);
    if (waiters === undefined || this.#wake === undefined) return;
    const limit = this.#deps.ceilingsOf(namespace);
    const held = [...this.#deps.inventory.heldBy(namespace)];
    for (const [key, { wanted }] of [...waiters].toSorted(([, a], [, b]) => compareRanks(a.instance, b.instance))) {
      if (wanted === undefined || gpuRefusal(limit, held, wanted) !== undefined) continue;
      held.push(wanted);
      this.#wake(key);
    }
  }

  /**
   * Counts the claims of a tenant as the API server has them, once in a term as the leader: the cache may not show the
   * last claims of the leader before. Those of this term the inventory knows itself. Rejects with KubeError.
   */
  readClaims(namespace: string, signal: AbortSignal): Promise<void> {
    const known = this.#reads.get(namespace);
    if (known !== undefined) return known;
    const reading = this.#readClaims(namespace, signal);
    this.#reads.set(namespace, reading);
    reading.catch(() => this.#reads.delete(namespace));
    return reading;
  }

  /** Wakes every instance of a tenant that a ceiling or a budget refused. */
  wakeAll(namespace: string): void {
    for (const key of this.#waiters.get(namespace)?.keys() ?? []) this.#wake?.(key);
  }

  async #readClaims(namespace: string, signal: AbortSignal): Promise<void> {
    const { client, inventory, stores, withClaim } = this.#deps;
    const { items } = await client.list(GPU_INSTANCES, { namespace, signal });
    const pods = await this.#readPods(namespace, signal);
    for (const live of items) {
      const key = keyOf(live);
      const cached = stores.instances.get(key);
      const pod = pods.get(keyOf({ namespace, name: firstPodOf(live) }));
      const claimed = withClaimOf(live, pod);
      const { claim, diskGb = 0, diskPersistent = false } = claimed.status ?? {};
      const isKnown = cached !== undefined && withClaim(cached).status?.claim !== undefined;
      if (claim === undefined || isKnown || inventory.undecided(key) !== undefined) continue;
      const bearer = claimed === live ? undefined : pod;
      if (bearer === undefined ? isSeen(stores.instances, live) : isSeen(stores.pods, bearer)) continue;
      inventory.assume(live, claim, { gb: diskGb, persistent: diskPersistent });
      if (bearer === undefined) inventory.written(live);
      else inventory.writtenOnPod(key, bearer);
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
