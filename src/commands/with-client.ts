import type { KubeClient } from '../kube/client/client.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { type KubeConnection, loadKubeConfig } from '../kube/config/config.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';
import { ClockCheck } from '../runtime/clock-check.ts';

/** An invalid command line. The message says what to write. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** The cluster that a command works on. */
interface Cluster {
  /** Of the kubeconfig. */
  namespace: string;
  connection: KubeConnection;
  /** The API server's clock, once it has answered. */
  clock: Pick<Clock, 'now'>;
}

/** Runs `use` with a client for the cluster of $KUBECONFIG, of the pod or of ~/.kube/config, then closes the client. */
export async function withClient<T>(
  env: NodeJS.ProcessEnv,
  use: (client: KubeClient, cluster: Cluster) => Promise<T>,
): Promise<T> {
  const connection = await loadKubeConfig({ kubeconfig: env['KUBECONFIG'] });
  const clock = systemClock();
  const check = new ClockCheck(clock);
  const client = createKubeClient(connection, { clock, onDate: (answer) => check.saw(answer) });
  const { namespace } = connection;
  try {
    return await use(client, { namespace, connection, clock: check });
  } finally {
    await client.close();
  }
}
