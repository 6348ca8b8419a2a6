import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { InformerMetrics } from '../kube/watch/informer-metrics.ts';
import { createInformer, type InformerOptions } from '../kube/watch/reflector.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import {
  type KubeObject,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceType,
  STORAGE_CLASSES,
} from '../kube/types.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { GPU_INSTANCES } from '../resources/gpu-instance.ts';
import { GPU_POOLS } from '../resources/gpu-pool.ts';
import { INSTANCE_TEMPLATES } from '../resources/instance-template.ts';
import { SSH_KEYS } from '../resources/ssh-key.ts';
import { CONTROLLER_INDEXERS } from '../caches/indexes.ts';
import { pruneDisk, pruneNode, prunePod } from '../caches/prune.ts';
import type { ControllerStores } from './stores.ts';

export interface CacheDeps {
  client: KubeClient;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  log: Logger;
  metrics?: InformerMetrics;
}

export interface Caches {
  stores: ControllerStores;
  /** Keeps all of them up to date until the signal aborts. Never rejects. Call it once. */
  run(signal: AbortSignal): Promise<void>;
}

/** The watch caches of the controllers. */
export function createCaches(deps: CacheDeps): Caches {
  const runs: ((signal: AbortSignal) => Promise<void>)[] = [];
  function cache<T extends KubeObject>(
    type: ResourceType<T>,
    options: Partial<Pick<InformerOptions<T>, 'indexers' | 'prune'>> = {},
  ): ReadStore<T> {
    const informer = createInformer({ ...deps, ...options, type });
    runs.push((signal) => informer.run(signal));
    return informer.store;
  }
  const stores: ControllerStores = {
    instances: cache(GPU_INSTANCES, { indexers: CONTROLLER_INDEXERS.instances }),
    keys: cache(SSH_KEYS, { indexers: CONTROLLER_INDEXERS.keys }),
    templates: cache(INSTANCE_TEMPLATES),
    apiKeys: cache(API_KEYS),
    pools: cache(GPU_POOLS),
    nodes: cache(NODES, { prune: pruneNode }),
    pods: cache(PODS, { prune: prunePod, indexers: CONTROLLER_INDEXERS.pods }),
    disks: cache(PERSISTENT_VOLUME_CLAIMS, { prune: pruneDisk }),
    namespaces: cache(NAMESPACES),
    quotas: cache(RESOURCE_QUOTAS, { indexers: CONTROLLER_INDEXERS.quotas }),
    storageClasses: cache(STORAGE_CLASSES),
  };
  return {
    stores,
    async run(signal) {
      await Promise.all(runs.map((run) => run(signal)));
    },
  };
}
