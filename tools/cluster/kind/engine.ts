import { LocalFailure } from '../../lib/failure.ts';
import { findProgram, lastLines, run } from '../../lib/shell.ts';

const ENGINES = ['docker', 'podman'] as const;

/** A program that runs containers. */
export type Engine = (typeof ENGINES)[number];

/** Milliseconds for an answer. */
const ANSWER_TIMEOUT = 10_000;

/** The container engine that answers on this machine. */
export async function findEngine(): Promise<Engine | undefined> {
  for (const engine of ENGINES) {
    if ((await findProgram(engine)) === undefined) continue;
    if ((await run(engine, ['info'], { timeout: ANSWER_TIMEOUT })).code === 0) return engine;
  }
  return undefined;
}

/** The containers of a kind cluster, and the engines that do not answer. */
export interface FoundContainers {
  containers: { engine: Engine; id: string }[];
  silent: Engine[];
}

export async function findContainers(cluster: string): Promise<FoundContainers> {
  const found: FoundContainers = { containers: [], silent: [] };
  const args = ['ps', '--all', '--quiet', '--filter', `label=io.x-k8s.kind.cluster=${cluster}`];
  for (const engine of ENGINES) {
    const { code, stdout } = await run(engine, args, { timeout: ANSWER_TIMEOUT });
    if (code !== 0) found.silent.push(engine);
    else found.containers.push(...stdout.split('\n').flatMap((id) => (id === '' ? [] : [{ engine, id }])));
  }
  return found;
}

/** Runs the engine, and returns what it printed. Throws LocalFailure. */
export async function ask(engine: Engine, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(engine, args);
  if (code === 0) return stdout.trim();
  throw new LocalFailure(`${engine} ${args[0] ?? ''} failed.`, 'Read the lines below.', lastLines(stderr, 4));
}
