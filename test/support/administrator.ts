import type { KubeClient } from '../../src/kube/client/client.ts';
import { makeAdministrator } from '../../tools/cluster/sign-in.ts';

const PATHS = [
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth-administrator',
  '/api/v1/namespaces/default/serviceaccounts/berth-administrator',
];

/** The account that `npm start` makes; the returned function removes it. */
export async function administrator(client: KubeClient): Promise<() => Promise<void>> {
  await makeAdministrator(client, AbortSignal.timeout(30_000));
  return async () => {
    for (const path of PATHS) await client.raw('DELETE', path);
  };
}
