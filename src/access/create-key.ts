import { randomBytes } from 'node:crypto';
import type { KubeClient } from '../kube/client/client.ts';
import { API_KEYS, type ApiKey, type ApiKeySpec, mintToken, SCOPES } from '../resources/api-key.ts';

/** What the tenant decides about a key. */
export type NewKey = { namespace: string } & Partial<
  Pick<ApiKeySpec, 'displayName' | 'scopes' | 'expiresAt' | 'limits' | 'revoked'>
>;

/** Creates an APIKey. The token is in this answer and nowhere else. */
export async function createKey(
  client: KubeClient,
  options: NewKey,
): Promise<{ token: string; name: string; key: ApiKey }> {
  const { namespace, displayName = '', scopes = [...SCOPES], revoked = false, expiresAt, limits } = options;
  const { token, hash, prefix } = mintToken();
  const name = `key-${randomBytes(5).toString('hex')}`;
  const spec: ApiKeySpec = {
    hash,
    prefix,
    displayName,
    scopes,
    revoked,
    ...(expiresAt && { expiresAt }),
    ...(limits && { limits }),
  };
  const key = await client.create(API_KEYS, { metadata: { namespace, name }, spec });
  return { token, name, key };
}
