import { join } from 'node:path';
import { readOptions } from '../../tools/cluster/options.ts';
import { stateFolder } from '../../tools/lib/paths.ts';

/** How many workers run files on clusters of their own. A given cluster is one, and one worker has it. */
export function clusterWorkers(count: number): number {
  return readOptions([], process.env, join(stateFolder(), 'kubeconfig')).given ? 1 : count;
}

/** Where Node keeps what it has compiled: a test starts many processes of the same program. */
export const PROGRAM_CACHE = { NODE_COMPILE_CACHE: join(stateFolder(), 'compile-cache') };

/** Node itself loads the modules, as it does those of a role, and keeps them compiled. */
export const NATIVE_IMPORTS = { experimental: { viteModuleRunner: false } } as const;

/** The reporter that keeps the results and times of a run in the file that `.ci/run` names. */
export function keptResults(): ['json', { outputFile: string }][] {
  const outputFile = process.env['BERTH_TEST_RESULTS'];
  return outputFile === undefined ? [] : [['json', { outputFile }]];
}
