import { nodeObstacle } from '../../tools/cluster/decide-node.ts';
import type { Way } from '../../tools/cluster/ways.ts';
import { type Host, installCommand } from '../../tools/lib/host/host.ts';
import type { RequirementName } from '../../tools/lib/host/requirements.ts';
import { commandOf } from '../../tools/scripts/prepare.ts';

/** Why tests of this run are skipped. */
export interface Shortage {
  reasons: readonly string[];
  /** The one command that runs them all; undefined where this machine cannot. */
  command: string | undefined;
}

export interface ShortageOptions {
  host: Host;
  /** Those of the packages that this machine lacks. */
  missing: readonly RequirementName[];
  /** How the run got its cluster; undefined when it has none, or one with a real node. */
  way: Way | undefined;
  /** The npm script of the run. */
  script: string;
}

/** Says what keeps tests from running on this machine and this cluster; undefined when nothing does. */
export async function shortageOf({ host, missing, way, script }: ShortageOptions): Promise<Shortage | undefined> {
  const obstacle = nodeObstacle(host);
  const cluster = way === undefined ? undefined : reasonOf(way, obstacle);
  const lack = missing.length === 0 ? undefined : `this machine lacks ${missing.join(', ')}`;
  const reasons = [cluster, lack].filter((reason) => reason !== undefined);
  if (reasons.length === 0) return undefined;
  return { reasons, command: await commandFor({ host, missing, way, script }) };
}

/** Why a cluster has no real node that tests can use. */
function reasonOf(way: Way, obstacle: string | undefined): string | undefined {
  if (way === 'given') return 'the cluster that KUBECONFIG names has no real node of ours';
  return way === 'kind' ? 'images of the tests cannot be put into a kind cluster' : obstacle;
}

async function commandFor({ host, missing, way, script }: ShortageOptions): Promise<string | undefined> {
  const run = commandOf(script);
  if (host.platform !== 'linux' || way === 'kind') return undefined;
  const environment = way === 'given' ? 'env -u KUBECONFIG ' : '';
  if (missing.length === 0) return `${environment}${host.isRoot ? '' : 'sudo '}${run}`;
  const manager = await host.packageManager();
  if (manager === undefined) return undefined;
  if (host.isRoot) return `${environment}${run} -- --yes`;
  return `sudo ${installCommand(manager, missing).join(' ')} && ${environment}sudo ${run}`;
}

/** The line that ends a run: how many tests were skipped, why, and how to run them. */
export function skipLine(skipped: number, { reasons, command }: Shortage): string {
  const count = skipped === 1 ? '1 test was skipped' : `${skipped} tests were skipped`;
  const remedy = command === undefined ? 'They run on another machine.' : `This runs them all: ${command}`;
  return `${count}, because ${reasons.join(', and ')}. ${remedy}`;
}
