import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { createInformer, type InformerOptions } from '../kube/reflector.ts';
import type { ReadStore } from '../kube/store.ts';
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
import { EXPORTER_LABEL } from './gpu-instance/observe.ts';
import { instanceUidsOf } from './gpu-instance/owner.ts';
import { pruneDisk, pruneNode, prunePod } from './prune.ts';
import { type ControllerStores, INDEX } from './stores.ts';

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

function inNamespace({ metadata }: KubeObject): string[] {
  return [metadata.namespace ?? ''];
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
    instances: cache(GPU_INSTANCES, {
      indexers: {
        [INDEX.namespace]: inNamespace,
        [INDEX.node]: ({ status }) => (status?.claim === undefined ? [] : [status.claim.node]),
        [INDEX.reason]: ({ status }) => {
          const ready = status?.conditions?.find(({ type }) => type === 'Ready');
          return ready === undefined ? [] : [ready.reason];
        },
      },
    }),
    keys: cache(SSH_KEYS, { indexers: { [INDEX.namespace]: inNamespace } }),
    templates: cache(INSTANCE_TEMPLATES),
    apiKeys: cache(API_KEYS),
    pools: cache(GPU_POOLS),
    nodes: cache(NODES, { prune: pruneNode }),
    pods: cache(PODS, {
      prune: prunePod,
      indexers: {
        [INDEX.instance]: instanceUidsOf,
        // Of exporters alone: an index of all pods by node would be kept for nothing.
        [INDEX.node]: ({ metadata, spec }) =>
          metadata.labels?.['app'] === EXPORTER_LABEL.app && spec?.nodeName !== undefined ? [spec.nodeName] : [],
      },
    }),
    disks: cache(PERSISTENT_VOLUME_CLAIMS, { prune: pruneDisk }),
    namespaces: cache(NAMESPACES),
    quotas: cache(RESOURCE_QUOTAS, { indexers: { [INDEX.namespace]: inNamespace } }),
    storageClasses: cache(STORAGE_CLASSES),
  };
  return {
    stores,
    async run(signal) {
      await Promise.all(runs.map((run) => run(signal)));
    },
  };
}
