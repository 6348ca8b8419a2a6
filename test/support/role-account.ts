import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { type KubeConnection, loadKubeConfig } from '../../src/kube/config/config.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { account, type Rule, tokenOf } from './accounts.ts';

const PATHS: Readonly<Record<string, string>> = {
  ServiceAccount: '/api/v1/namespaces/NAMESPACE/serviceaccounts',
  Role: '/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/rolebindings',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
};

interface Manifest extends KubeObject {
  kind: string;
  rules?: Rule[];
}

/** What the chart renders for the account of a role, in another namespace. */
function manifestsOf(role: string, namespace: string): Manifest[] {
  const text = readFileSync(join(ROOT, `deploy/base/${role}.yaml`), 'utf8').replaceAll('berth-system', namespace);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest)
    .filter(({ kind }) => PATHS[kind] !== undefined)
    .map((one) => {
      if (!one.kind.startsWith('Cluster')) return one;
      // Other tests have roles of the same cluster.
      const own = (text: string): string => text.replaceAll(`"name":"berth-${role}"`, `"name":"${namespace}-${role}"`);
      const { subjects, ...rest } = one as Manifest & { subjects?: object[] };
      return { ...(JSON.parse(own(JSON.stringify(rest))) as Manifest), ...(subjects && { subjects }) };
    });
}

/** A kubeconfig of the test cluster with another token. */
export async function writeKubeconfigOf(path: string, kubeconfig: string, token: string): Promise<string> {
  const config = parse(await readFile(kubeconfig, 'utf8')) as { users: { name: string; user: object }[] };
  const users = config.users.map(({ name }) => ({ name, user: { token } }));
  await writeFile(path, JSON.stringify({ ...config, users }), { mode: 0o600 });
  return path;
}

/** The API server as a new service account with these rights in its namespace sees it. */
export async function connectAs(
  client: KubeClient,
  kubeconfig: string,
  { namespace, name, rules }: { namespace: string; name: string; rules: readonly Rule[] },
): Promise<KubeConnection> {
  await account(client, namespace, name, rules);
  const token = await tokenOf(client, namespace, name, []);
  const folder = await mkdtemp(join(tmpdir(), 'berth-account-'));
  const path = await writeKubeconfigOf(join(folder, 'kubeconfig'), kubeconfig, token);
  const connection = await loadKubeConfig({ kubeconfig: path });
  await rm(folder, { recursive: true });
  return connection;
}

/** The service account of a role of Berth, with the rights that the chart gives it, in a namespace of the test. */
export class RoleAccount implements AsyncDisposable {
  readonly name: string;
  readonly #client: KubeClient;
  readonly #namespace: string;
  readonly #manifests: readonly Manifest[];

  private constructor(client: KubeClient, namespace: string, role: string, manifests: readonly Manifest[]) {
    this.name = `berth-${role}`;
    this.#client = client;
    this.#namespace = namespace;
    this.#manifests = manifests;
  }

  /** @param added rules in the namespace, as values of the chart add them */
  static async make(
    { client, name: namespace }: { client: KubeClient; name: string },
    role: string,
    added: readonly Rule[] = [],
  ): Promise<RoleAccount> {
    const manifests = manifestsOf(role, namespace).map((one) =>
      one.kind === 'Role' ? { ...one, rules: [...(one.rules ?? []), ...added] } : one,
    );
    const account = new RoleAccount(client, namespace, role, manifests);
    for (const one of manifests) await client.raw('POST', account.#pathOf(one), one);
    return account;
  }

  token(): Promise<string> {
    return tokenOf(this.#client, this.#namespace, this.name, []);
  }

  /** Someone edits the roles: the rules that allow this are gone. */
  async lose(verb: string, resource: string): Promise<void> {
    for (const role of this.#roles()) {
      const rules = role.rules?.filter(
        ({ verbs, resources }) => !(verbs.includes(verb) && resources.includes(resource)),
      );
      await this.#put({ ...role, rules });
    }
  }

  /** As the chart has them: it is installed again. */
  async restore(): Promise<void> {
    for (const role of this.#roles()) await this.#put(role);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#manifests.filter(({ kind }) => kind.startsWith('Cluster')))
      await this.#client.raw('DELETE', `${this.#pathOf(one)}/${one.metadata.name}`);
  }

  #roles(): Manifest[] {
    return this.#manifests.filter(({ kind }) => kind.endsWith('Role'));
  }

  async #put(role: Manifest): Promise<void> {
    await this.#client.raw('PUT', `${this.#pathOf(role)}/${role.metadata.name}`, role);
  }

  #pathOf({ kind }: Manifest): string {
    return (PATHS[kind] ?? '').replace('NAMESPACE', this.#namespace);
  }
}
