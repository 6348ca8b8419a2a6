import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { plantAll } from './planted/run.ts';
import { YEAR } from './plans.ts';
import { type Job, type Result, runJobs } from './pool.ts';
import { say } from './say.ts';
import { planOf } from './seeds.ts';
import { Tally } from './tally.ts';

const DAY_MS = 86_400_000;
/** One world of either plan takes less. */
const LIMIT_MS = 3_600_000;
const USAGE = `usage: npm run simulate -- [OPTION]...
  --seed N      replays one world; without it, new ones
  --year        a year of a thousand GPUs, in place of twenty minutes of 32
  --hours H     tries new worlds for so long (0.05)
  --looks N     worlds that may be tried to make a failure short (60; a year: 0)
  --faults      plants each fault, and says which are found
  --only TEXT   only the faults whose name has this text`;

function options() {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      year: { type: 'boolean', default: false },
      hours: { type: 'string', default: '0.05' },
      looks: { type: 'string' },
      faults: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  });
  const number = (name: 'seed' | 'hours' | 'looks', text: string): number => {
    const value = Number(text);
    if (!(text !== '' && value >= 0)) throw new RangeError(`--${name} ${text} is no number: write one, such as 7`);
    return value;
  };
  return {
    ...values,
    seed: values.seed === undefined ? undefined : number('seed', values.seed),
    hours: number('hours', values.hours),
    looks: number('looks', values.looks ?? (values.year ? '0' : '60')),
  };
}

/** Whatever seeds come, until the time is over. */
function* newJobs(looks: number, hours: number): Iterable<Job> {
  const end = performance.now() + hours * 3_600_000;
  for (let seed = Math.floor(Date.now() / 1000); performance.now() < end; seed += 1)
    yield { seed, plan: planOf(seed), looks };
}

function tell({ seed, picture, starts, lives, simulated }: Result): void {
  if (picture !== undefined) say(picture);
  say(`seed ${seed}: ${lives} instances, ${starts} starts, ${(simulated / DAY_MS).toFixed(2)} days`);
}

async function main(): Promise<void> {
  const { seed, year, hours, looks, faults, only, help } = options();
  if (help) {
    say(USAGE);
    return;
  }
  if (faults) {
    process.exitCode = (await plantAll(only)) ? 0 : 1;
    return;
  }
  const known = seed ?? (year ? Math.floor(Date.now() / 1000) : undefined);
  const jobs =
    known === undefined
      ? newJobs(looks, hours)
      : (year ? YEAR : [planOf(known)]).map((plan) => ({ seed: known, plan, looks }));
  const tally = new Tally();
  await runJobs(jobs, { processes: availableParallelism(), limitMs: LIMIT_MS }, (result) => {
    tell(result);
    tally.add(result);
    if (known === undefined) say(tally.text);
  });
  say(tally.text);
  process.exitCode = tally.failed > 0 ? 1 : 0;
}

if (import.meta.main) await main();
