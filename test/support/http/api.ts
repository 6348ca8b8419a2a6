import type { Logger } from 'pino';
import type { ApiDeps } from '../../../src/http/context.ts';
import { createKey } from '../../../src/http/keys-command.ts';
import {
  API_KEY_INDEXERS,
  INSTANCE_INDEXERS,
  SSH_KEY_INDEXERS,
  TEMPLATE_INDEXERS,
} from '../../../src/http/store-indexers.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createInformer } from '../../../src/kube/watch/reflector.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import type { IndexFunctions } from '../../../src/kube/watch/store.ts';
import {
  type KubeObject,
  NAMESPACES,
  NODES,
  PODS,
  type ResourceType,
  STORAGE_CLASSES,
} from '../../../src/kube/types.ts';
import { API_KEYS, type ApiKeySpec } from '../../../src/resources/api-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/gpu-instance.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { INSTANCE_TEMPLATES } from '../../../src/resources/instance-template.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { waitFor } from '../wait-for.ts';
import type { Addresses } from './replicas.ts';

export interface Cluster extends AsyncDisposable {
  client: KubeClient;
  log: Logger;
  stores: ApiDeps['stores'];
  inventory: Inventory;
  /** The HTTP interface that all tests share. */
  api: Addresses;
  /** A namespace of its own, removed at the end. */
  namespace(name: string): Promise<string>;
  /** A key that works at every replica, those of the shared API unless others are named; its token. */
  key(namespace: string, options?: Partial<ApiKeySpec>, at?: Addresses): Promise<string>;
}

/** Asks for the models, whose calls are counted apart from those of the compute endpoints. */
async function isKnown(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  await waitFor('the key to be known', async () => (await fetch(`${url}/api/v1/models`, { headers })).status !== 401);
}

/** A client and watch caches of a cluster, beside the API that others serve on it. */
export async function connect(kubeconfig: string, api: Addresses, log: Logger): Promise<Cluster> {
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
  const storageClasses = cache(STORAGE_CLASSES);
  await Promise.all(ready);
  const inventory = new Inventory({ ...stores, pods, pools, storageClasses }, clock);

  return {
    client,
    log,
    stores,
    inventory,
    api,
    async namespace(name) {
      const unique = `${name}-${Math.random().toString(36).slice(2, 8)}`;
      await client.create(NAMESPACES, { metadata: { name: unique } });
      namespaces.push(unique);
      return unique;
    },
    async key(namespace, options = {}, { replicas } = api) {
      const { token, name } = await createKey(client, { namespace, displayName: 'test', ...options });
      await waitFor('the key in the cache', () => stores.apiKeys.get(`${namespace}/${name}`));
      if (options.expiresAt === undefined) await Promise.all(replicas.map((url) => isKnown(url, token)));
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
