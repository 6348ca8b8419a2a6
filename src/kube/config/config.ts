import { access } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { connectTo, type KubeConnection, type KubeEndpoint } from './connection.ts';
import { KubeConfigError } from '../errors.ts';
import { type Environment, inClusterEndpoint, isInCluster, SERVICE_ACCOUNT_DIR } from './in-cluster.ts';

export type { KubeConnection } from './connection.ts';

export interface LoadOptions {
  /** One path or several, as $KUBECONFIG. Without it $KUBECONFIG, the pod's service account, ~/.kube/config, in order. */
  kubeconfig?: string | undefined;
  /** Context to use instead of the file's current one. */
  context?: string | undefined;
  env?: Environment;
  clock?: Clock;
  serviceAccountDirectory?: string;
}

/** The API server and credentials, in the order of controller-runtime's config.GetConfig. Throws KubeConfigError. */
export async function loadKubeConfig(options: LoadOptions = {}): Promise<KubeConnection> {
  return connectTo(await findEndpoint(options));
}

/** A process in a pod has no file to read, and so it loads no reader. */
async function fromFiles(paths: string[], options: { context: string | undefined; clock: Clock }) {
  const { kubeconfigEndpoint } = await import('./kubeconfig.ts');
  return kubeconfigEndpoint(paths, options);
}

async function findEndpoint(options: LoadOptions): Promise<KubeEndpoint> {
  const { kubeconfig, context, env = process.env, clock = systemClock() } = options;
  const directory = options.serviceAccountDirectory ?? SERVICE_ACCOUNT_DIR;
  const named = (kubeconfig || env['KUBECONFIG'] || '').split(delimiter).filter((path) => path !== '');
  if (named.length > 0) return fromFiles(named, { context, clock });
  if (await isInCluster({ env, directory })) return inClusterEndpoint({ env, clock, directory });
  const home = join(env['HOME'] ?? homedir(), '.kube', 'config');
  const exists = await access(home).then(
    () => true,
    () => false,
  );
  if (exists) return fromFiles([home], { context, clock });
  throw new KubeConfigError(
    `No Kubernetes cluster is configured: not in a pod, no $KUBECONFIG and no ${home}. Set KUBECONFIG to a kubeconfig.`,
  );
}
