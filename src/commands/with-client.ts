import type { KubeClient } from '../kube/client/client.ts';
import { systemClock } from '../lib/clock.ts';
import { loadKubeConfig } from '../kube/config/config.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';

/** A command line that cannot be carried out. The message says what to write. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Runs `use` with a client for the cluster that $KUBECONFIG, the pod or ~/.kube/config names, and closes it. */
export async function withClient<T>(
  env: NodeJS.ProcessEnv,
  use: (client: KubeClient, namespace: string) => Promise<T>,
): Promise<T> {
  const connection = await loadKubeConfig({ kubeconfig: env['KUBECONFIG'] });
  const client = createKubeClient(connection, { clock: systemClock() });
  try {
    return await use(client, connection.namespace);
  } finally {
    await client.close();
  }
}
