import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import type { KubeObject } from '../kube/types.ts';
import type { InformerMetrics } from '../kube/watch/informer-metrics.ts';
import { Informer } from '../kube/watch/reflector.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { ClaimsOnPods } from './claims-on-pods.ts';
import { type CacheDefinition, type CachedObject, type CacheName, CACHES, type Reads } from './table.ts';

export interface CachesDeps {
  client: KubeClient;
  /** Berth's own. */
  namespace: string;
  clock: Clock;
  log: Logger;
  metrics?: InformerMetrics;
  /** Everything where it is absent. */
  reads?: Reads;
  /** Whether a claim may be on a pod alone. Only where admission keeps others from writing it there. */
  claimOnPod?: boolean;
}

const EVERYTHING: Reads = { texts: true };

/** Some stores by their names in the table. */
export type Stores<N extends CacheName> = { [Name in N]: ReadStore<CachedObject<Name>> };

/** The watch caches of one process. The first `get` of a cache starts its watch. */
export class Caches {
  readonly #deps: CachesDeps;
  readonly #signal: AbortSignal;
  readonly #informers = new Map<CacheName, Informer<KubeObject>>();
  readonly #running: Promise<void>[] = [];

  /** Aborting `signal` ends the watches. */
  constructor(deps: CachesDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  get<N extends CacheName>(name: N): ReadStore<CachedObject<N>> {
    const informer = this.#informers.get(name) ?? this.#start(name);
    return informer.store as unknown as ReadStore<CachedObject<N>>;
  }

  pick<N extends CacheName>(names: readonly N[]): Stores<N> {
    return Object.fromEntries(names.map((name) => [name, this.get(name)])) as Stores<N>;
  }

  /** Whether every cache in use has its first complete list. */
  get synced(): boolean {
    return [...this.#informers.values()].every(({ store }) => store.hasSynced);
  }

  /** Resolves when every watch has ended, after the signal aborted. Never rejects. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  #start(name: CacheName): Informer<KubeObject> {
    const { reads = EVERYTHING, namespace, claimOnPod = false, ...deps } = this.#deps;
    const { createPrune, isOwn, ...definition } = CACHES[name] as unknown as CacheDefinition<KubeObject>;
    const claims = name === 'instances' && claimOnPod ? new ClaimsOnPods(this.get('pods')) : undefined;
    const informer = new Informer({
      ...definition,
      ...(createPrune && { prune: createPrune(reads) }),
      ...(claims && { complete: (instance: KubeObject) => claims.complete(instance as GpuInstance) }),
      ...(isOwn && { namespace }),
      ...deps,
      random: Math.random,
    });
    claims?.follow((key) => informer.refresh(key));
    this.#informers.set(name, informer);
    this.#running.push(informer.run(this.#signal));
    return informer;
  }
}
