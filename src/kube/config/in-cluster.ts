import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import type { KubeEndpoint } from './connection.ts';
import { KubeConfigError } from '../errors.ts';
import { tokenFile } from './token-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the kubelet mounts the service account. */
export const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface InClusterSource {
  env: Environment;
  clock: Clock;
  directory: string;
}

/** True when this process runs in a pod that has a service account token. */
export async function isInCluster(source: Omit<InClusterSource, 'clock'>): Promise<boolean> {
  if (!source.env['KUBERNETES_SERVICE_HOST'] || !source.env['KUBERNETES_SERVICE_PORT']) return false;
  return access(join(source.directory, 'token')).then(
    () => true,
    () => false,
  );
}

/** The endpoint of the cluster this pod runs in, after client-go's rest.InClusterConfig. */
export async function inClusterEndpoint({ env, clock, directory }: InClusterSource): Promise<KubeEndpoint> {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '';
  const ca = await readFile(join(directory, 'ca.crt')).catch((error: unknown) => {
    throw new KubeConfigError(`The cluster's certificate ${directory}/ca.crt cannot be read.`, { cause: error });
  });
  const namespace = await readFile(join(directory, 'namespace'), 'utf8').catch(() => 'default');
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: namespace.trim(),
    tls: { ca, rejectUnauthorized: true },
    headers: tokenFile(join(directory, 'token'), clock),
  };
}
