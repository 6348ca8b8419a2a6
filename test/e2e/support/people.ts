import { writeFile } from 'node:fs/promises';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { blockWith, readManual } from '../../support/manual.ts';
import type { World } from './world.ts';

/** Whether RBAC lets the user do this in the namespace. */
export async function may(
  world: World,
  user: string,
  { verb, resource, namespace }: { verb: string; resource: string; namespace: string },
): Promise<boolean> {
  const { stdout } = await world.kubectl(['auth', 'can-i', verb, resource, '-n', namespace, '--as', user]);
  return stdout.trim() === 'yes';
}

/**
 * Writes a kubeconfig for an account that is berth-admin in the namespace, and that may forward to the pods of Berth by the
 * commands of docs/use/cli.md, and nothing else.
 */
export async function forwarderOf(world: World, namespace: string, path: string): Promise<void> {
  const kubectl = async (words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await world.kubectl(words);
    if (code !== 0) throw new Error(`kubectl ${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  const account = `--serviceaccount=${namespace}:forwarder`;
  await kubectl(['create', 'serviceaccount', 'forwarder', '-n', namespace]);
  await kubectl(['create', 'rolebinding', 'forwarder', '-n', namespace, '--clusterrole=berth-admin', account]);
  const manual = await readManual('use/cli.md');
  const lines = blockWith(manual, 'pods/portforward').replaceAll('--user=me@example.com', account).trim().split('\n');
  for (const line of lines) await kubectl(line.split(' ').slice(1));
  const token = await kubectl(['create', 'token', 'forwarder', '-n', namespace]);
  const view = await kubectl(['config', 'view', '--raw', '--minify', '-o', 'json']);
  const config = JSON.parse(view) as { users: object[] };
  const users = config.users.map((user) => ({ ...user, user: { token: token.trim() } }));
  await writeFile(path, JSON.stringify({ ...config, users }), { mode: 0o600 });
}

/** Makes the namespace a tenant, or no tenant any more. */
export async function setTenant({ client }: World, name: string, isTenant: boolean): Promise<void> {
  const labels = { 'berth.dev/tenant': isTenant ? 'true' : null };
  await client.patch(NAMESPACES, { name }, { metadata: { labels } }, { type: 'merge' });
}
