import type { Plan } from './people/plan.ts';
import { PLAIN, USUAL } from './plans.ts';

/**
 * Seeds of plain worlds in which something went wrong once, and what. They are tried before new ones. A seed is another
 * world once the plan of what people do changes, so each fault that was mended has a test of its own, too.
 */
export const FAILED_ONCE: readonly { seed: number; what: string }[] = [
  { seed: 1_795_799_488, what: 'the judge took silences off a bill of which nobody could hear while watches lagged' },
  { seed: 1_795_800_486, what: 'a pod was let go before its end was billed, while the leader stood still' },
  { seed: 1, what: 'a request that was repeated while its instance was being removed rented another' },
  {
    seed: 12,
    what: 'an instance whose finalizer an operator took off kept its GPUs as long as that of another kept it',
  },
  {
    seed: 19,
    what: 'a deletion in the foreground waited for ever for a pod that alone bore the claim, once an operator had taken the finalizer off',
  },
  { seed: 208, what: 'a bill lacked the UUIDs of devices whose slice was away when they were given back' },
  { seed: 2, what: 'nobody looked at the instance of a pod that ended without its labels and owner' },
];

const PLAIN_SEEDS: ReadonlySet<number> = new Set(FAILED_ONCE.map(({ seed }) => seed));

/** What a world of this seed is like: those in which something went wrong before there were scenes stay as they were. */
export function planOf(seed: number): Plan {
  return PLAIN_SEEDS.has(seed) ? PLAIN : USUAL;
}
