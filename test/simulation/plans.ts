import type { Plan } from './people/plan.ts';

/** A world of 32 GPUs, small enough that they are always short. */
export const USUAL: Plan = {
  tenants: 4,
  nodes: 4,
  rentals: 20,
  spanMs: 8 * 60_000,
  days: 1,
  firstDay: 0,
  faults: 45,
  scenes: 5,
  divisions: 3,
  quotas: 3,
  hasMoney: true,
};

/** A world in which nothing comes together on purpose. */
export const PLAIN: Plan = { ...USUAL, rentals: 30, scenes: 0, divisions: 0, quotas: 0, hasMoney: false };

const QUARTER: Plan = {
  tenants: 50,
  nodes: 125,
  rentals: 55,
  spanMs: 20 * 60_000,
  days: 92,
  firstDay: 0,
  faults: 9,
  scenes: 0,
  divisions: 1,
  quotas: 1,
  hasMoney: true,
};

/** A year of a thousand GPUs, whose nights are skipped, in quarters: one core takes the next when it has one done. */
export const YEAR: readonly Plan[] = [
  QUARTER,
  { ...QUARTER, days: 91, firstDay: 92 },
  { ...QUARTER, days: 91, firstDay: 183 },
  { ...QUARTER, days: 91, firstDay: 274 },
];
