import { NotFoundError } from '../../../src/kube/errors.ts';
import { API_KEYS, mintToken, SCOPES, type ApiKey } from '../../../src/resources/api-key.ts';
import type { Progress } from '../../lib/progress.ts';
import { applyCounted } from '../apply.ts';
import type { LocalCluster } from '../local-cluster.ts';

/** The tenant of the key that the tour uses. */
const NAMESPACE = 'default';

/** Milliseconds after which a key in a given cluster expires, also when its supervisor was killed and deletes nothing. */
const KEY_LIFE = 30 * 24 * 3_600_000;

/** Milliseconds that its deletion may take. */
const DELETE_TIMEOUT = 5000;

/** Makes a new API key for this run: of the last one the cluster has the hash, and nobody has the token. */
export async function createLocalKey(
  { client, way }: Pick<LocalCluster, 'client' | 'way'>,
  signal: AbortSignal,
): Promise<{ name: string; token: string }> {
  const { token, hash, prefix } = mintToken();
  const name = `local-${hash.slice(0, 10)}`;
  const expiry = way === 'given' ? { expiresAt: new Date(Date.now() + KEY_LIFE).toISOString() } : {};
  const key: ApiKey = {
    metadata: { name, namespace: NAMESPACE },
    spec: { hash, prefix, displayName: 'local tour', scopes: [...SCOPES], revoked: false, ...expiry },
  };
  await applyCounted(client, API_KEYS, { object: key, signal });
  return { name, token };
}

/** Deletes the key, or says how to. */
export async function deleteLocalKey({ client }: LocalCluster, name: string, progress: Progress): Promise<void> {
  try {
    await client.delete(API_KEYS, { namespace: NAMESPACE, name }, { signal: AbortSignal.timeout(DELETE_TIMEOUT) });
  } catch (error) {
    if (error instanceof NotFoundError) return;
    const reason = error instanceof Error ? error.message : String(error);
    progress.line(
      `The API key of this run could not be deleted: ${reason} Delete it: kubectl delete -n ${NAMESPACE} apikey ${name}`,
    );
  }
}
