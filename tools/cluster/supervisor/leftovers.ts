import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { ClusterRecord } from './record.ts';
import { deleteKind } from '../kind/kind-cluster.ts';
import { removeRoutes } from '../kind/routes.ts';
import { run } from '../../lib/shell.ts';
import { waitFor } from '../../lib/wait.ts';

const CGROUPS = '/sys/fs/cgroup';

/** The links and cgroups of a cluster that still exist. */
export async function leftoversOf({ link, cgroup }: ClusterRecord): Promise<string[]> {
  const left: string[] = [];
  if (link !== undefined && (existsSync(`/sys/class/net/${link}`) || link in networkInterfaces()))
    left.push(`link ${link}`);
  if (cgroup !== undefined) {
    const hierarchies = await readdir(CGROUPS).catch(() => []);
    const folders = ['', ...hierarchies].map((name) => join(CGROUPS, name, cgroup));
    left.push(...folders.filter((folder) => existsSync(folder)).map((folder) => `cgroup ${folder}`));
  }
  return left;
}

/**
 * Waits until a cluster whose supervisor has ended takes itself apart, which needs a second, and removes the rest.
 * Returns what is left after that.
 */
export async function clearLeftovers(state: string, record: ClusterRecord): Promise<string[]> {
  // A supervisor that was killed early has not written its way.
  const kind = record.way === 'kind' || record.way === undefined;
  const routes = await clearRoutes(record);
  const containers = kind ? await deleteKind(state, record.kind?.engine) : [];
  return [...routes, ...containers, ...(await clearOwn(record))];
}

async function clearRoutes({ kind }: ClusterRecord): Promise<string[]> {
  if (kind?.routes === undefined) return [];
  const { routes } = kind;
  return removeRoutes(routes).then(
    () => [],
    () => routes.to.map((cidr) => `route to ${cidr} via ${routes.via}`),
  );
}

async function clearOwn(record: ClusterRecord): Promise<string[]> {
  const gone = await waitFor(async () => (await leftoversOf(record)).length === 0, { timeout: 10_000 });
  if (gone === true) return [];
  if (record.link !== undefined) await run('ip', ['link', 'del', record.link]);
  for (const item of await leftoversOf(record)) {
    const folder = /^cgroup (.+)$/.exec(item)?.[1];
    if (folder !== undefined) await run('find', [folder, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', '+']);
  }
  return leftoversOf(record);
}
