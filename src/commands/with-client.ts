import type { KubeClient } from '../kube/client/client.ts';
import { systemClock } from '../lib/clock.ts';
import { type KubeConnection, loadKubeConfig } from '../kube/config/config.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';

/** An invalid command line. The message says what to write. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Runs `use` with a client for the cluster of $KUBECONFIG, of the pod or of ~/.kube/config, then closes the client. */
export async function withClient<T>(
  env: NodeJS.ProcessEnv,
  use: (client: KubeClient, namespace: string, connection: KubeConnection) => Promise<T>,
): Promise<T> {
  const connection = await loadKubeConfig({ kubeconfig: env['KUBECONFIG'] });
  const client = createKubeClient(connection, { clock: systemClock() });
  try {
    return await use(client, connection.namespace, connection);
  } finally {
    await client.close();
  }
}
