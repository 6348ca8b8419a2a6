import { beforeAll, describe, expect, it } from 'vitest';
import { compareText } from '../../../src/lib/compare.ts';
import { lookForGo } from '../../../tools/lib/go/find.ts';
import { allocatorProgram, askAllocator } from '../../support/allocator/allocator.ts';
import { offered } from '../../support/allocator/offered.ts';
import { whyLess } from '../../support/allocator/reasons.ts';
import { NODE, SORTS, someWorld } from '../../support/allocator/worlds.ts';

// Random nodes, and what the allocator of the real scheduler places on them.

const SHARE = Number(process.env['BERTH_LIVES'] ?? 1);
const WORLDS = 500 * SHARE;
/** Their answers fit into the output that is kept of a program. */
const BATCH = 100;

describe.skipIf(!(await lookForGo()).usable)('what is offered of the devices of a node', () => {
  let program: string;

  beforeAll(async () => {
    program = await allocatorProgram();
  }, 600_000);

  it(
    'is what the scheduler places, or less for a reason that has a name',
    { timeout: 180_000 * Math.max(1, SHARE) },
    async () => {
      const first = Number(process.env['BERTH_SEED'] ?? Date.now() % 100_000_000);
      process.stdout.write(`seed ${first}: BERTH_SEED repeats it\n`);
      const seen = new Map<string, number>();
      const unexplained: string[] = [];
      for (let from = first; from < first + WORLDS; from += BATCH) {
        const seeds = Array.from({ length: Math.min(BATCH, first + WORLDS - from) }, (_, index) => from + index);
        const worlds = seeds.map((seed) => someWorld(seed));
        const questions = worlds.map((world) => ({ ...world, node: NODE, held: [] }));
        const answers = await askAllocator(program, questions);
        expect(answers).toHaveLength(worlds.length);
        for (const [index, answer] of answers.entries()) {
          const world = worlds[index] ?? someWorld(from + index);
          for (const [name, available] of Object.entries(offered(world, answer))) {
            const placed = answer.free[name] ?? Number.NaN;
            const why = available < placed ? await whyLess(program, { world, answer, name, available }) : undefined;
            if (available !== placed && why === undefined)
              unexplained.push(`seed ${from + index}: ${available} of ${placed} ${name}`);
            const what = why ?? (placed === 0 ? 'none on either side' : 'equal');
            seen.set(`${world.sort}: ${what}`, (seen.get(`${world.sort}: ${what}`) ?? 0) + 1);
          }
        }
      }
      for (const [what, times] of [...seen].toSorted(([a], [b]) => compareText(a, b)))
        process.stdout.write(`${what}: ${times}\n`);
      expect(unexplained).toEqual([]);
      for (const sort of SORTS) expect(seen.get(`${sort}: equal`)).toBeGreaterThan(0);
    },
  );
});
