import { join } from 'node:path';
import { readOptions } from '../../tools/cluster/options.ts';
import { stateFolder } from '../../tools/lib/paths.ts';

/** How many workers run files on clusters of their own. A given cluster is one, and one worker has it. */
export function clusterWorkers(count: number): number {
  return readOptions([], process.env, join(stateFolder(), 'kubeconfig')).given ? 1 : count;
}

/** Where Node keeps what it has compiled: a test starts many processes of the same program. */
export const PROGRAM_CACHE = { NODE_COMPILE_CACHE: join(stateFolder(), 'compile-cache') };

/** In CI, the reporter that keeps the results and times of a run. */
export function jsonInCi(name: string): ['json', { outputFile: string }][] {
  return process.env['CI'] === 'true' ? [['json', { outputFile: join(stateFolder(), 'ci', `${name}.json`) }]] : [];
}
