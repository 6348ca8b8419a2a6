import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { type KubeConnection, loadKubeConfig } from '../../src/kube/config/config.ts';
import { connectTo } from '../../src/kube/config/connection.ts';
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
}

/** A namespace of the shared test cluster, with a client of its own. It is deleted when the test ends. */
export async function testNamespace(): Promise<TestNamespace> {
  const connection = await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig });
  const client = createKubeClient(connection, { clock: systemClock() });
  const name = `test-${randomBytes(5).toString('hex')}`;
  await client.create(NAMESPACES, { metadata: { name } });
  return {
    name,
    client,
    connection,
    async [Symbol.asyncDispose]() {
      await client.delete(NAMESPACES, { name });
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
