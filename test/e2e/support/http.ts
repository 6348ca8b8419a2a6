import { createHash, randomBytes } from 'node:crypto';
import type { KubeClient } from '../../../src/kube/client/client.ts';
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

/** Signs in to the dashboard as a service account with the cluster's role `admin` in the namespace. */
export async function signIn(client: KubeClient, namespace: string, base: string): Promise<Call> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const name = 'e2e-admin';
  await client.raw('POST', accounts, { metadata: { name } });
  await client.raw('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['berth'] } };
  const answer = await client.raw<{ status: { token: string } }>('POST', `${accounts}/${name}/token`, request);
  const page = await fetch(`${base}/dashboard/`);
  if (!(await page.text()).includes('<!doctype html>')) throw new Error(`the dashboard answered ${page.status}`);
  const headers: Record<string, string> = { 'content-type': 'application/json', 'x-berth-dashboard': '1' };
  const call: Call = async (method, path, body) => {
    const response = await fetch(`${base}/dashboard/api${path}`, { method, headers, body: JSON.stringify(body) });
    const cookie = response.headers.get('set-cookie')?.split(';')[0];
    if (cookie !== undefined) headers['cookie'] = cookie;
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const session = await call('POST', '/session', { token: answer.status.token });
  if (session.status >= 300) throw new Error(`sign-in answered ${session.status}: ${JSON.stringify(session.body)}`);
  return call;
}
