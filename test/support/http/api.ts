import type { Logger } from 'pino';
import { API_CACHES, type ApiStores } from '../../../src/http/server/context.ts';
import { createKey } from '../../../src/access/create-key.ts';
import { Caches } from '../../../src/caches/caches.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import type { ApiKeySpec } from '../../../src/resources/api-key.ts';
import { waitFor } from '../wait-for.ts';
import type { Addresses } from './replicas.ts';

export interface Cluster extends AsyncDisposable {
  client: KubeClient;
  log: Logger;
  stores: ApiStores;
  inventory: Inventory;
  /** The HTTP interface that the tests on the cluster share. */
  api: Addresses;
  /** A namespace of its own, removed at the end. */
  namespace(name: string): Promise<string>;
  /** The token of a new key that works at every replica, by default those of the shared API. */
  key(namespace: string, options?: Partial<ApiKeySpec>, at?: Addresses): Promise<string>;
}

/** Asks for the models: those calls do not count against the limit of the compute endpoints. */
async function isKnown(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  await waitFor('the key to be known', async () => (await fetch(`${url}/api/v1/models`, { headers })).status !== 401);
}

/** A client and watch caches of a cluster, beside the API that other processes serve on it. */
export async function connect(kubeconfig: string, api: Addresses, log: Logger): Promise<Cluster> {
  const clock = systemClock();
  const connection = await loadKubeConfig({ kubeconfig });
  const client = createKubeClient(connection, { clock });
  const abort = new AbortController();
  const namespaces: string[] = [];
  const caches = new Caches({ client, namespace: 'berth-system', clock, log }, abort.signal);
  const stores = caches.pick(API_CACHES);
  const supply = caches.pick(['pools', 'storageClasses']);
  await Promise.all(Object.values({ ...stores, ...supply }).map(({ synced }) => synced));
  const inventory = new Inventory({ ...stores, ...supply }, clock);

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
      await caches.ended();
      await client.close();
    },
  };
}
