import type { KubeClient } from '../../src/kube/client/client.ts';

/** A rule of a Role. */
export interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

const group = (resources: string[], verbs: string[]): Rule => ({ apiGroups: ['berth.dev'], resources, verbs });

/** What the chart's roles for people allow: see charts/berth/templates/tenants/roles.yaml. */
export const BERTH_VIEW = [
  group(
    [
      'gpuinstances',
      'sshkeys',
      'instancetemplates',
      'usagerecords',
      'tokenrecords',
      'tenantlimits',
      'registrycredentials',
      'instancehistories',
    ],
    ['get', 'list', 'watch'],
  ),
];
export const BERTH_EDIT = [
  ...BERTH_VIEW,
  group(
    ['gpuinstances', 'sshkeys', 'instancetemplates', 'webhooks'],
    ['create', 'update', 'patch', 'delete', 'deletecollection'],
  ),
  group(['webhooks'], ['get', 'list', 'watch']),
  group(['registrycredentials'], ['delete', 'deletecollection']),
];

/** What the page needs to list, make and revoke API keys. */
export const KEY_RIGHTS = [group(['apikeys'], ['list', 'create', 'patch'])];

/** A token as `kubectl create token` makes it; without an audience, for the API server. */
export async function tokenOf(
  client: KubeClient,
  namespace: string,
  name: string,
  audiences = ['berth'],
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences } };
  return (await client.raw<{ status: { token: string } }>('POST', path, body)).status.token;
}

/** A service account with these rights in its namespace, and a token of it for the dashboard. */
export async function account(
  client: KubeClient,
  namespace: string,
  name: string,
  rules: readonly Rule[],
): Promise<string> {
  const core = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  await client.raw('POST', core, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
  if (rules.length > 0) {
    await client.raw('POST', `${rbac}/roles`, { apiVersion, kind: 'Role', metadata: { name }, rules });
    await client.raw('POST', `${rbac}/rolebindings`, {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { name },
      roleRef: { apiGroup, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    });
  }
  return await tokenOf(client, namespace, name);
}

/** Such an account that has rights in the whole cluster too. `remove` takes these away. */
export async function clusterAccount(
  client: KubeClient,
  namespace: string,
  name: string,
  { rules, everywhere }: { rules: readonly Rule[]; everywhere: readonly Rule[] },
): Promise<{ token: string; remove: () => Promise<void> }> {
  const token = await account(client, namespace, name, rules);
  const apiGroup = 'rbac.authorization.k8s.io';
  const [base, apiVersion] = [`/apis/${apiGroup}/v1`, `${apiGroup}/v1`];
  const metadata = { name: `${namespace}-${name}` };
  await client.raw('POST', `${base}/clusterroles`, { apiVersion, kind: 'ClusterRole', metadata, rules: everywhere });
  await client.raw('POST', `${base}/clusterrolebindings`, {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup, kind: 'ClusterRole', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  });
  return {
    token,
    async remove() {
      await client.raw('DELETE', `${base}/clusterrolebindings/${metadata.name}`);
      await client.raw('DELETE', `${base}/clusterroles/${metadata.name}`);
    },
  };
}
