import { parseArgs } from 'node:util';
import { actsOf, type Outcome, runEpisode } from './episode.ts';
import type { Act } from './people/acts.ts';
import type { Plan } from './people/plan.ts';
import { pictureOf } from './picture.ts';
import { plantAll } from './planted/run.ts';
import { say } from './say.ts';
import { shortest } from './shrink.ts';

/** A world of 32 GPUs, small enough that they are always short. */
export const USUAL: Plan = { tenants: 4, nodes: 4, rentals: 30, spanMs: 8 * 60_000, days: 1, faults: 30 };

/** A year of a thousand GPUs, whose nights are skipped. */
export const YEAR: Plan = { tenants: 50, nodes: 125, rentals: 55, spanMs: 20 * 60_000, days: 365, faults: 3 };

/** Runs one seed; a failure comes with the shortest list of acts that was found. */
export async function runSeed(
  seed: number,
  plan: Plan,
  looks: number,
): Promise<{ outcome: Outcome; acts: readonly Act[] }> {
  const acts = actsOf(seed, plan);
  const outcome = await runEpisode(seed, plan, acts);
  const [first] = outcome.violations;
  if (first === undefined || looks === 0) return { outcome, acts };
  let smallest = outcome;
  const least = await shortest(
    acts,
    async (some) => {
      const one = await runEpisode(seed, plan, some);
      const isSame = one.violations[0]?.invariant === first.invariant;
      if (isSame) smallest = one;
      return isSame;
    },
    looks,
  );
  return { outcome: smallest, acts: least };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      hours: { type: 'string' },
      looks: { type: 'string', default: '60' },
      year: { type: 'boolean', default: false },
      faults: { type: 'boolean', default: false },
    },
  });
  const looks = Number(values.looks);
  if (values.faults) {
    plantAll(20);
    return;
  }
  if (values.seed !== undefined) {
    const began = performance.now();
    const { outcome, acts } = await runSeed(Number(values.seed), values.year ? YEAR : USUAL, looks);
    say(pictureOf(outcome, acts));
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    say(
      `${outcome.lives} instances, ${outcome.starts} starts, ${(outcome.simulated / 86_400_000).toFixed(2)} days in ${seconds} s`,
    );
    process.exitCode = outcome.violations.length > 0 ? 1 : 0;
    return;
  }
  const began = performance.now();
  const end = began + Number(values.hours ?? 0.05) * 3_600_000;
  const sum = { worlds: 0, rentals: 0, starts: 0, hours: 0, failed: 0 };
  for (let seed = Math.floor(Date.now() / 1000); performance.now() < end; seed += 1) {
    const { outcome, acts } = await runSeed(seed, USUAL, looks);
    sum.worlds += 1;
    sum.rentals += USUAL.rentals;
    sum.starts += outcome.starts;
    sum.hours += outcome.elapsed / 3_600_000;
    if (outcome.violations.length > 0) {
      sum.failed += 1;
      say(pictureOf(outcome, acts));
    }
    const seconds = (performance.now() - began) / 1000;
    say(
      `seed ${seed}: ${sum.worlds} worlds, ${sum.failed} failed, ${sum.starts} starts, ${(sum.rentals / seconds).toFixed(1)} rentals/s, ${((sum.hours * 3600) / seconds).toFixed(0)} times real time`,
    );
  }
  process.exitCode = sum.failed > 0 ? 1 : 0;
}

if (import.meta.main) await main();
