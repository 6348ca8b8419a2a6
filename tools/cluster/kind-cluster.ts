import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { applyAll, parseManifests } from './apply.ts';
import { kwokVersion } from '../lib/go/programs.ts';
import { LocalFailure } from '../lib/failure.ts';
import { ROOT } from '../lib/paths.ts';
import { lastLines, type Outcome, type run as runProgram } from '../lib/shell.ts';

export interface KindOptions {
  state: string;
  engine: 'docker' | 'podman';
  run: typeof runProgram;
  signal: AbortSignal;
}

/** The name of this checkout's kind cluster. Every checkout has another one. */
export function kindName(state: string): string {
  return `berth-${createHash('sha256').update(state).digest('hex').slice(0, 8)}`;
}

/** Creates the kind cluster of this checkout and returns the path of its kubeconfig. Replaces one that was left over. */
export async function createKind({ state, engine, run, signal }: KindOptions): Promise<string> {
  const name = kindName(state);
  const kubeconfig = join(state, 'kubeconfig');
  const env = kindEnvironment(engine);
  await run('kind', ['delete', 'cluster', '--name', name, '--kubeconfig', kubeconfig], { env, signal });
  const config = join(ROOT, 'deploy/kind/cluster.yaml');
  const args = ['create', 'cluster', '--name', name, '--config', config, '--kubeconfig', kubeconfig, '--wait', '120s'];
  const result = await run('kind', args, { env, signal });
  if (result.code !== 0) throw kindFailure(result);
  return kubeconfig;
}

/** The release of kwok: its controller, and the stages that make nodes and pods move. */
const KWOK_RELEASE = 'https://github.com/kubernetes-sigs/kwok/releases/download';
const KWOK_FILES = ['kwok.yaml', 'stage-fast.yaml'];

/** Runs kwok in the cluster, in the version that deploy/local/kubernetes/go.mod locks. Throws LocalFailure. */
export async function installKwok(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (const file of KWOK_FILES) {
    const url = `${KWOK_RELEASE}/v${kwokVersion()}/${file}`;
    const response = await fetch(url, { signal }).catch(() => undefined);
    if (response?.status !== 200) {
      throw new LocalFailure(
        `${url} cannot be downloaded (${response === undefined ? 'no answer' : `status ${response.status}`}).`,
        'Check the network: kwok simulates the GPU nodes of a kind cluster.',
      );
    }
    await applyAll(client, parseManifests(await response.text()), signal);
  }
}

/** Deletes the kind cluster of this checkout; no error when there is none. */
export async function deleteKind({ state, engine, run }: Omit<KindOptions, 'signal'>): Promise<void> {
  await run('kind', ['delete', 'cluster', '--name', kindName(state)], { env: kindEnvironment(engine) });
}

function kindEnvironment(engine: 'docker' | 'podman'): NodeJS.ProcessEnv {
  return { ...process.env, KIND_EXPERIMENTAL_PROVIDER: engine };
}

function kindFailure({ stdout, stderr }: Outcome): LocalFailure {
  const details = lastLines(stderr || stdout, 8);
  return new LocalFailure(
    'kind could not create the cluster.',
    'Read the lines below, and check that the container engine has disk and memory left.',
    details,
  );
}
