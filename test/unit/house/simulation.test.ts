import { expect, test } from 'vitest';
import { actsOf, runEpisode } from '../../simulation/episode.ts';
import type { Plan } from '../../simulation/people/plan.ts';
import { USUAL } from '../../simulation/plans.ts';
import { shortest } from '../../simulation/shrink.ts';

const SMALL: Plan = { ...USUAL, rentals: 8, spanMs: 120_000, faults: 60 };

test.each([
  { seed: 7, has: 'device plugins' },
  { seed: 3, has: 'slices' },
])('seed $seed is the same world with $has each time, whatever the process did before', async ({ seed }) => {
  const acts = actsOf(seed, SMALL);
  const first = await runEpisode(seed, SMALL, acts);
  await runEpisode(8, SMALL, actsOf(8, SMALL));
  const again = await runEpisode(seed, SMALL, acts);
  expect(first.violations).toEqual([]);
  expect(first.starts).toBeGreaterThan(0);
  expect(again.history).toEqual(first.history);
});

test('a failure is made as short as can be', async () => {
  const items = Array.from({ length: 200 }, (_, index) => index);
  let looks = 0;
  const least = await shortest(
    items,
    async (some) => {
      looks += 1;
      return some.includes(13) && some.includes(150);
    },
    500,
  );
  expect(least).toEqual([13, 150]);
  expect(looks).toBeLessThan(100);
});
