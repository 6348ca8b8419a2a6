import { actsOf, type Outcome, runEpisode } from './episode.ts';
import { pictureOf } from './picture.ts';
import type { Job, Result } from './pool.ts';
import { shortest } from './shrink.ts';

/** Runs one seed. A failure comes with a picture of the shortest list of acts that was found. */
export async function trySeed({ seed, plan, looks }: Job): Promise<Result> {
  const acts = actsOf(seed, plan);
  const outcome = await runEpisode(seed, plan, acts);
  const { lives, starts, elapsed, simulated, violations } = outcome;
  const result = { seed, rentals: plan.rentals * plan.days, lives, starts, elapsed, simulated };
  const [first] = violations;
  if (first === undefined) return result;
  let smallest: Outcome = outcome;
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
  return { ...result, found: first, picture: pictureOf(smallest, least) };
}
