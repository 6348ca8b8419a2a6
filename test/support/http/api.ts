import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { memoryCounter } from '../../../src/gateway/limits/counter.ts';
import type { Counters } from '../../../src/http/limits/shared-counter.ts';
import { createModelGateway } from '../../../src/gateway/gateway.ts';
import { getPrincipal } from '../../../src/http/auth/principal.ts';
import type { ApiDeps } from '../../../src/http/context.ts';
import { createKey } from '../../../src/http/keys-command.ts';
import { startApi } from '../../../src/http/server.ts';
import {
  API_KEY_INDEXERS,
  INSTANCE_INDEXERS,
  SSH_KEY_INDEXERS,
  TEMPLATE_INDEXERS,
} from '../../../src/http/store-indexers.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { systemClock } from '../../../src/kube/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config.ts';
import { createInformer } from '../../../src/kube/reflector.ts';
import { createKubeClient } from '../../../src/kube/rest-client.ts';
import type { IndexFunctions } from '../../../src/kube/store.ts';
import {
  ENDPOINT_SLICES,
  type KubeObject,
  NAMESPACES,
  NODES,
  PODS,
  type ResourceType,
  SERVICES,
  STORAGE_CLASSES,
} from '../../../src/kube/types.ts';
import { API_KEYS, type ApiKeySpec } from '../../../src/resources/api-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/gpu-instance.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { INSTANCE_TEMPLATES } from '../../../src/resources/instance-template.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { waitFor } from '../wait-for.ts';

export interface Cluster extends AsyncDisposable {
  client: KubeClient;
  log: Logger;
  stores: ApiDeps['stores'];
  inventory: Inventory;
  /** One more replica of the API on these caches. */
  serve(options?: {
    counters?: Counters;
    namespace?: string;
  }): Promise<{ url: string; registry: Registry; close(): Promise<void> }>;
  /** A namespace of its own, removed at the end. */
  namespace(name: string): Promise<string>;
  /** A key that works; its token. */
  key(namespace: string, options?: Partial<ApiKeySpec>): Promise<string>;
}

/** Watch caches and clients on a cluster, and the API on top of them, in this process. */
export async function connect(kubeconfig: string, log: Logger): Promise<Cluster> {
  const clock = systemClock();
  const connection = await loadKubeConfig({ kubeconfig });
  const client = createKubeClient(connection, { clock });
  const abort = new AbortController();
  const running: Promise<void>[] = [];
  const namespaces: string[] = [];
  const ready: Promise<void>[] = [];

  function cache<T extends KubeObject>(type: ResourceType<T>, indexers?: IndexFunctions<T>) {
    const informer = createInformer({ client, type, clock, random: Math.random, log, ...(indexers && { indexers }) });
    running.push(informer.run(abort.signal));
    ready.push(informer.store.synced);
    return informer.store;
  }

  const stores = {
    instances: cache(GPU_INSTANCES, INSTANCE_INDEXERS),
    sshKeys: cache(SSH_KEYS, SSH_KEY_INDEXERS),
    templates: cache(INSTANCE_TEMPLATES, TEMPLATE_INDEXERS),
    apiKeys: cache(API_KEYS, API_KEY_INDEXERS),
    nodes: cache(NODES),
  };
  const pods = cache(PODS);
  const pools = cache(GPU_POOLS);
  const services = cache(SERVICES);
  const slices = cache(ENDPOINT_SLICES);
  const storageClasses = cache(STORAGE_CLASSES);
  await Promise.all(ready);
  const inventory = new Inventory({ ...stores, pods, pools, storageClasses }, clock);

  return {
    client,
    log,
    stores,
    inventory,
    async serve(options = {}) {
      const registry = new Registry();
      const namespace = options.namespace ?? 'berth-system';
      const gateway = createModelGateway({
        services,
        slices,
        pods,
        namespace,
        getPrincipal,
        counter: memoryCounter,
        registry,
        logger: log,
      });
      gateway.start();
      const api = await startApi({
        client,
        stores,
        offers: inventory,
        models: gateway.router,
        namespace,
        requestCounter: options.counters?.counter('requests') ?? memoryCounter(),
        defaultImage: 'debian:12',
        trustProxy: false,
        clock,
        log,
        registry,
        address: { host: '127.0.0.1', port: 0 },
      });
      return {
        url: `http://127.0.0.1:${api.address.port}`,
        registry,
        close: async () => {
          await api.close();
          await gateway.stop();
        },
      };
    },
    async namespace(name) {
      const unique = `${name}-${Math.random().toString(36).slice(2, 8)}`;
      await client.create(NAMESPACES, { metadata: { name: unique } });
      namespaces.push(unique);
      return unique;
    },
    async key(namespace, options = {}) {
      const { token, name } = await createKey(client, { namespace, displayName: 'test', ...options });
      await waitFor('the key in the cache', () => stores.apiKeys.get(`${namespace}/${name}`));
      return token;
    },
    async [Symbol.asyncDispose]() {
      inventory.close();
      for (const name of namespaces) await client.delete(NAMESPACES, { name });
      abort.abort();
      await Promise.all(running);
      await client.close();
    },
  };
}
