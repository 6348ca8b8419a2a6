import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { say } from '../say.ts';
import { PLANTED } from './faults.ts';

const HOOKS = fileURLToPath(new URL('hooks.ts', import.meta.url));
/** How a search exits that has found something. A process that fails exits with 1. */
export const FOUND = 3;
const SEARCH = fileURLToPath(new URL('search.ts', import.meta.url));

/** Runs one fault in a process of its own, until one of the first seeds finds it. Returns what the process printed. */
export function plant(name: string, seeds: number): { isFound: boolean; said: string } {
  const env = { ...process.env, BERTH_PLANTED_FAULT: name };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', HOOKS, SEARCH, String(seeds)], {
    env,
    encoding: 'utf8',
  });
  if (status !== 0 && status !== FOUND) throw new Error(`${name}: ${stderr}`);
  return { isFound: status === FOUND, said: stdout.trim() };
}

/** Plants every fault whose name has this text, one after the other, and prints which were found. */
export function plantAll(seeds: number, only = ''): void {
  const faults = PLANTED.filter(({ name }) => name.includes(only));
  let found = 0;
  for (const { name } of faults) {
    const { isFound, said } = plant(name, seeds);
    if (isFound) found += 1;
    say(`${isFound ? 'found ' : 'MISSED'} ${name}: ${said}`);
  }
  say(`${found} of ${faults.length} were found`);
  process.exitCode = found === faults.length ? 0 : 1;
}
