import { writeFile } from 'node:fs/promises';

/** Writes a kubeconfig for a way to the API server that needs no credentials, such as the fault proxy. Returns its path. */
export async function writeKubeconfig(path: string, server: string): Promise<string> {
  const cluster = { name: 'one', cluster: { server } };
  const context = { name: 'one', context: { cluster: 'one', user: 'one' } };
  const lists = { clusters: [cluster], users: [{ name: 'one', user: {} }], contexts: [context] };
  const text = { apiVersion: 'v1', kind: 'Config', 'current-context': 'one', ...lists };
  await writeFile(path, JSON.stringify(text));
  return path;
}
