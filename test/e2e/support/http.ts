import { createHash, randomBytes } from 'node:crypto';
import type { KubeClient } from '../../../src/kube/client.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';

/** Calls of one tenant on the HTTP interface. */
export interface Tenant {
  /** The key, which must turn up nowhere else. */
  token: string;
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>;
}

/** Makes a key in the namespace and uses it at the address. */
export async function tenant(client: KubeClient, namespace: string, base: string): Promise<Tenant> {
  const token = `berth_${randomBytes(24).toString('hex')}`;
  const hash = createHash('sha256').update(token).digest('hex');
  await client.create(API_KEYS, {
    metadata: { namespace, name: 'e2e' },
    spec: { hash, prefix: '', displayName: 'e2e', scopes: ['compute:read', 'compute:write', 'models'], revoked: false },
  });
  return {
    token,
    async call(method, path, body) {
      const response = await fetch(`${base}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
  };
}
