import { createInformerMetrics, type InformerMetrics } from '../kube/watch/informer-metrics.ts';
import { createInformer, type Informer } from '../kube/watch/reflector.ts';
import type { IndexFunctions, ReadStore } from '../kube/watch/store.ts';
import {
  ENDPOINT_SLICES,
  type KubeObject,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceType,
  SERVICES,
  STORAGE_CLASSES,
} from '../kube/types.ts';
import { API_KEY_INDEXERS, INSTANCE_INDEXERS, SSH_KEY_INDEXERS, TEMPLATE_INDEXERS } from '../http/store-indexers.ts';
import { CONTROLLER_INDEXERS } from './indexes.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { GPU_INSTANCES } from '../resources/gpu-instance.ts';
import { GPU_POOLS } from '../resources/gpu-pool.ts';
import { INSTANCE_TEMPLATES } from '../resources/instance-template.ts';
import { SSH_KEYS } from '../resources/ssh-key.ts';
import type { Caches } from '../controllers/caches.ts';
import { pruneDisk, pruneNode, prunePod } from './prune.ts';
import type { Process } from '../roles/process.ts';

interface Definition<T extends KubeObject> {
  type: ResourceType<T>;
  labelSelector?: string;
  indexers?: IndexFunctions<T>;
  prune?: (object: T) => T;
}

function define<T extends KubeObject>(definition: Definition<T>): Definition<T> {
  return definition;
}

const MODEL_SERVER = 'berth.dev/model-server=true';

/** Every kind that a role may watch. Roles of one process share the caches, so each has the indexes of all readers. */
const DEFINITIONS = {
  instances: define({ type: GPU_INSTANCES, indexers: { ...INSTANCE_INDEXERS, ...CONTROLLER_INDEXERS.instances } }),
  keys: define({ type: SSH_KEYS, indexers: { ...SSH_KEY_INDEXERS, ...CONTROLLER_INDEXERS.keys } }),
  templates: define({ type: INSTANCE_TEMPLATES, indexers: TEMPLATE_INDEXERS }),
  apiKeys: define({ type: API_KEYS, indexers: API_KEY_INDEXERS }),
  pools: define({ type: GPU_POOLS }),
  nodes: define({ type: NODES, prune: pruneNode }),
  pods: define({ type: PODS, indexers: CONTROLLER_INDEXERS.pods, prune: prunePod }),
  disks: define({ type: PERSISTENT_VOLUME_CLAIMS, prune: pruneDisk }),
  namespaces: define({ type: NAMESPACES }),
  quotas: define({ type: RESOURCE_QUOTAS, indexers: CONTROLLER_INDEXERS.quotas }),
  storageClasses: define({ type: STORAGE_CLASSES }),
  services: define({ type: SERVICES, labelSelector: MODEL_SERVER }),
  slices: define({ type: ENDPOINT_SLICES, labelSelector: MODEL_SERVER }),
};

type Definitions = typeof DEFINITIONS;
export type StoreName = keyof Definitions;
type ObjectOf<N extends StoreName> = Definitions[N] extends Definition<infer T> ? T : never;

/** The watch caches of one process, each made and kept up to date from the moment the first role asks for it. */
export class Stores {
  readonly #process: Process;
  readonly #metrics: InformerMetrics;
  readonly #signal: AbortSignal;
  readonly #informers = new Map<StoreName, Informer<KubeObject>>();
  readonly #running: Promise<void>[] = [];

  constructor(process: Process, signal: AbortSignal) {
    this.#process = process;
    this.#metrics = createInformerMetrics(process.registry);
    this.#signal = signal;
  }

  get<N extends StoreName>(name: N): ReadStore<ObjectOf<N>> {
    let informer = this.#informers.get(name);
    if (!informer) {
      const { client, clock, log } = this.#process;
      const definition = DEFINITIONS[name] as unknown as Definition<KubeObject>;
      informer = createInformer({ ...definition, client, clock, random: Math.random, log, metrics: this.#metrics });
      this.#informers.set(name, informer);
      this.#running.push(informer.run(this.#signal));
    }
    return informer.store as unknown as ReadStore<ObjectOf<N>>;
  }

  get synced(): boolean {
    return [...this.#informers.values()].every(({ store }) => store.hasSynced);
  }

  /** Resolves when every watch has ended, after the signal aborted. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }
}

/** The caches of the controllers, out of those that the process shares. */
export function controllerCaches(stores: Stores): Caches {
  return {
    stores: {
      instances: stores.get('instances'),
      keys: stores.get('keys'),
      templates: stores.get('templates'),
      apiKeys: stores.get('apiKeys'),
      pools: stores.get('pools'),
      nodes: stores.get('nodes'),
      pods: stores.get('pods'),
      disks: stores.get('disks'),
      namespaces: stores.get('namespaces'),
      quotas: stores.get('quotas'),
      storageClasses: stores.get('storageClasses'),
    },
    // The process keeps them up to date, for longer than the controllers run.
    run: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
  };
}
