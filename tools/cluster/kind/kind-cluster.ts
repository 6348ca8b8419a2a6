import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { LocalFailure } from '../../lib/failure.ts';
import type { NodeContainer } from '../../lib/images/image.ts';
import { lastLines, run } from '../../lib/shell.ts';
import { AUDIT_POLICY } from '../built/config-files.ts';
import { chooseSlot, networkOf, type ClusterNetwork } from '../built/network.ts';
import { giveGpus } from '../built/real-node.ts';
import { connectGiven } from '../given-cluster.ts';
import { kindConfig, kubeadmPatches } from './config.ts';
import { type Engine, findContainers } from './engine.ts';

export interface KindOptions {
  state: string;
  engine: Engine;
  /** Whether the API server writes an audit log. */
  audit: boolean;
  signal: AbortSignal;
}

/** A cluster of kind, whose node has two GPUs that are not real. */
export interface KindCluster {
  kubeconfig: string;
  client: KubeClient;
  node: NodeContainer & { engine: Engine };
  network: ClusterNetwork;
  /** With `audit`. */
  auditLog: string;
}

/** The name of this checkout's kind cluster. Every state folder has another one. */
export function kindName(state: string): string {
  return `berth-${createHash('sha256').update(state).digest('hex').slice(0, 8)}`;
}

/** Creates the kind cluster of a state folder. Replaces one that was left over. Throws LocalFailure; then none is left. */
export async function createKind({ state, engine, audit, signal }: KindOptions): Promise<KindCluster> {
  const name = kindName(state);
  const kubeconfig = join(state, 'kubeconfig');
  const folder = join(state, 'kind');
  await deleteKind(state);
  const network = networkOf(await chooseSlot(state));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'patches'), { recursive: true, mode: 0o700 });
  for (const [file, text] of Object.entries(kubeadmPatches())) writeFileSync(join(folder, 'patches', file), text);
  writeFileSync(join(folder, 'audit-policy.json'), JSON.stringify(AUDIT_POLICY));
  const config = join(folder, 'cluster.yaml');
  writeFileSync(config, stringify(kindConfig({ ...network, folder, audit, image: process.env['BERTH_KIND_IMAGE'] })));
  const args = ['create', 'cluster', '--name', name, '--config', config, '--kubeconfig', kubeconfig, '--wait', '120s'];
  try {
    const env = { ...process.env, KIND_EXPERIMENTAL_PROVIDER: engine };
    const { code, stdout, stderr } = await run('kind', args, { env, signal });
    signal.throwIfAborted();
    if (code !== 0)
      throw new LocalFailure(
        'kind could not create the cluster.',
        `Read the lines below, and check that ${engine} has disk and memory left. ` +
          '`npm start -- --built` starts a cluster without kind.',
        lastLines(stderr || stdout, 8),
      );
    const client = await connectGiven({ kubeconfig, context: undefined, signal });
    const node = `${name}-control-plane`;
    await giveGpus(client, node);
    return { kubeconfig, client, node: { engine, node }, network, auditLog: join(folder, 'audit.log') };
  } catch (error) {
    await deleteKind(state);
    throw error;
  }
}

/**
 * Deletes the kind cluster of a state folder, if there is one, and returns what is left of it. It asks the engines and not
 * kind, which may be gone from the PATH, and which edits the kubeconfig of the user.
 * @param made the engine that made the cluster, where that is known
 */
export async function deleteKind(state: string, made?: Engine): Promise<string[]> {
  const name = kindName(state);
  for (const { engine, id } of (await findContainers(name)).containers)
    await run(engine, ['rm', '--force', '--volumes', id]);
  const { containers, silent } = await findContainers(name);
  const left = containers.map(({ engine, id }) => `container ${id} of ${engine}`);
  return made !== undefined && silent.includes(made)
    ? [...left, `container ${name}-control-plane, because ${made} does not answer`]
    : left;
}
