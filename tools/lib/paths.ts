import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The root of the checkout, which holds deploy/, crds/ and the state folder. */
export const ROOT = resolve(import.meta.dirname, '../..');

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder for what is built once per machine: $BERTH_CACHE, else $XDG_CACHE_HOME/berth, else ~/.cache/berth. */
export function cacheFolder(env: Environment): string {
  if (env['BERTH_CACHE']) return resolve(env['BERTH_CACHE']);
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'berth');
}

/** The folder of this checkout's own cluster, which git ignores. */
export function stateFolder(): string {
  return join(ROOT, '.berth');
}
