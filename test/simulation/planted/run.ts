import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Job, type Result, runJobs } from '../pool.ts';
import { say } from '../say.ts';
import { planOf } from '../seeds.ts';
import { PLANTED } from './faults.ts';

const HOOKS = fileURLToPath(new URL('hooks.ts', import.meta.url));
/** Worlds in which a fault must show: two cores run them in less than a minute. */
const SEEDS = 150;
/** A world with a fault in it may spin for ever: it is found, too. */
const LIMIT_MS = 600_000;

/** Runs worlds with one fault until it shows. Its modules are loaded with it, so it has a process of its own. */
async function plant(name: string): Promise<Result | undefined> {
  const jobs = Array.from({ length: SEEDS }, (_, index): Job => {
    const seed = index + 1;
    return { seed, plan: planOf(seed), looks: 0 };
  });
  const env = { ...process.env, BERTH_PLANTED_FAULT: name };
  const options = { processes: 1, env, execArgv: ['--import', HOOKS], limitMs: LIMIT_MS };
  const shown: Result[] = [];
  await runJobs(jobs, options, (result) => {
    if (result.found !== undefined) shown.push(result);
    return shown.length > 0;
  });
  return shown[0];
}

/** Plants every fault whose name has this text, and says which were found. True: all of them. */
export async function plantAll(only: string): Promise<boolean> {
  const faults = PLANTED.filter(({ name }) => name.includes(only));
  const left = faults.values();
  let found = 0;
  const work = async (): Promise<void> => {
    for (const { name } of left) {
      const shown = await plant(name);
      if (shown?.found === undefined) say(`MISSED ${name}`);
      else {
        found += 1;
        say(`found  ${name}: ${shown.picture?.split('\n', 1)[0]}`);
      }
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  say(`${found} of ${faults.length} were found`);
  return found === faults.length;
}
