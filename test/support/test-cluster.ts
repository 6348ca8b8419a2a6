import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { type KubeConnection, loadKubeConfig } from '../../src/kube/config/config.ts';
import { connectTo } from '../../src/kube/config/connection.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { createKubeClient } from '../../src/kube/client/rest-client.ts';
import { type KubeObject, NAMESPACES, type ResourceType } from '../../src/kube/types.ts';

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** The cheapest kind to write, because nothing in the cluster reacts to it. */
export const CONFIG_MAPS: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
  readonly client: KubeClient;
  readonly connection: KubeConnection;
  /** Makes a namespace for Berth itself, in which nobody rents. It goes with this one. */
  home(): Promise<string>;
}

/** A namespace of the shared test cluster, with a client of its own. It is deleted when the test ends. */
export async function testNamespace(name = `test-${randomBytes(5).toString('hex')}`): Promise<TestNamespace> {
  const connection = await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig });
  const client = createKubeClient(connection, { clock: systemClock() });
  await client.create(NAMESPACES, { metadata: { name } });
  const made = [name];
  return {
    name,
    client,
    connection,
    async home() {
      const own = `${name}-berth`;
      await client.create(NAMESPACES, { metadata: { name: own } });
      made.push(own);
      return own;
    },
    async [Symbol.asyncDispose]() {
      for (const one of made) {
        await client.delete(NAMESPACES, { name: one }).catch((error: unknown) => {
          if (!(error instanceof NotFoundError)) throw error;
        });
      }
      await client.close();
    },
  };
}

function noHeaders(): Promise<Record<string, string>> {
  return Promise.resolve({});
}

/** Connections to a plain HTTP server that needs no credentials, such as the fault proxy. */
export function plainConnection(server: string): KubeConnection {
  return connectTo({ server, namespace: 'default', tls: { rejectUnauthorized: true }, headers: noHeaders });
}
