import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { systemClock } from '../../src/lib/clock.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { loadKubeConfig } from '../../src/kube/config/config.ts';
import { ForbiddenError, KubeConfigError, UnauthorizedError } from '../../src/kube/errors.ts';
import { createKubeClient } from '../../src/kube/client/rest-client.ts';
import { LocalFailure } from '../lib/failure.ts';

export interface GivenOptions {
  kubeconfig: string | undefined;
  context: string | undefined;
  signal: AbortSignal;
}

/** What the user of the kubeconfig must be allowed to do. */
const PERMISSIONS = [
  { verb: 'create', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
  { verb: 'list', group: '', resource: 'nodes' },
  { verb: 'create', group: '', resource: 'pods' },
  { verb: 'create', group: '', resource: 'pods', subresource: 'exec' },
] as const;

/**
 * Connects to a cluster that already runs, and makes sure that it answers and that its user may do what Berth needs.
 * Throws LocalFailure.
 */
export async function connectGiven({ kubeconfig, context, signal }: GivenOptions): Promise<KubeClient> {
  const connection = await loadKubeConfig({ kubeconfig, context }).catch((error: unknown) => {
    if (error instanceof KubeConfigError) {
      throw new LocalFailure(
        error.message,
        'Name another file with --kubeconfig, or unset KUBECONFIG for a cluster of your own.',
      );
    }
    throw error;
  });
  const client = createKubeClient(connection, { clock: systemClock() });
  try {
    await requirePermissions(client, AbortSignal.any([signal, AbortSignal.timeout(20_000)]));
    return client;
  } catch (error) {
    await client.close();
    signal.throwIfAborted();
    throw explain(error, connection.server);
  }
}

/**
 * Writes a file that names the context, and returns a value for KUBECONFIG that has this file before the given ones: with
 * it kubectl and the server use the context. The given files stay as they are.
 */
export function chooseContext(state: string, { kubeconfig, context }: { kubeconfig: string; context: string }): string {
  const path = join(state, 'kubeconfig');
  const lines = ['apiVersion: v1', 'kind: Config', `current-context: ${JSON.stringify(context)}`];
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
  return `${path}${delimiter}${kubeconfig}`;
}

async function requirePermissions(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (const resourceAttributes of PERMISSIONS) {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const { status } = await client.raw<{ status: { allowed: boolean } }>('POST', path, review, { signal });
    if (status.allowed) continue;
    const { verb, resource } = resourceAttributes;
    throw new LocalFailure(
      `The kubeconfig's user may not ${verb} ${resource} in this cluster.`,
      'Use a kubeconfig of a cluster administrator, or unset KUBECONFIG for a cluster of your own.',
    );
  }
}

function explain(error: unknown, server: string): unknown {
  if (error instanceof LocalFailure) return error;
  if (error instanceof UnauthorizedError || error instanceof ForbiddenError) {
    return new LocalFailure(
      `The cluster at ${server} does not accept the kubeconfig's user.`,
      'Renew its credentials.',
    );
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new LocalFailure(
    `The cluster at ${server} does not answer: ${reason}`,
    'Start that cluster, name another kubeconfig, or unset KUBECONFIG for a cluster of your own.',
  );
}
