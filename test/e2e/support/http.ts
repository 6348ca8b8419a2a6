import { createHash, randomBytes } from 'node:crypto';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';

/** Calls of one tenant on the HTTP interface. */
export interface Tenant {
  /** The key, which must appear nowhere else. */
  token: string;
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>;
}

/** Creates a key in the namespace, and returns calls with it to the base URL. */
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

type Call = (
  method: string,
  path: string,
  body?: unknown,
) => Promise<{ status: number; body: Record<string, unknown> }>;

/** What the account is bound to: the cluster's role gives no right to Berth's resources. */
const ADMIN_ROLES = ['admin', 'berth-view', 'berth-edit', 'berth-admin'];

/** Signs in to the dashboard as a service account that may do in the namespace whatever a tenant may. */
export async function signIn(client: KubeClient, namespace: string, base: string): Promise<Call> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const name = 'e2e-admin';
  await client.raw('POST', accounts, { metadata: { name } });
  for (const role of ADMIN_ROLES) {
    await client.raw('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
      metadata: { name: `${name}-${role}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    });
  }
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['berth'] } };
  const answer = await client.raw<{ status: { token: string } }>('POST', `${accounts}/${name}/token`, request);
  return await openSession(answer.status.token, base);
}

/** Signs in to the dashboard with a token of the cluster. */
export async function openSession(token: string, base: string): Promise<Call> {
  await waitFor('every replica that answers finds the dashboard', async () => {
    const pages = await Promise.all(Array.from({ length: 8 }, () => fetch(`${base}/dashboard/`)));
    const texts = await Promise.all(pages.map((page) => page.text()));
    return texts.every((text) => text.includes('<!doctype html>'));
  });
  const headers: Record<string, string> = { 'content-type': 'application/json', 'x-berth-dashboard': '1' };
  const call: Call = async (method, path, body) => {
    const response = await fetch(`${base}/dashboard/api${path}`, { method, headers, body: JSON.stringify(body) });
    const cookie = response.headers.get('set-cookie')?.split(';')[0];
    if (cookie !== undefined) headers['cookie'] = cookie;
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const session = await call('POST', '/session', { token });
  if (session.status >= 300) throw new Error(`sign-in answered ${session.status}: ${JSON.stringify(session.body)}`);
  return call;
}
