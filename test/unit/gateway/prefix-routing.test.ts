import { describe, expect, it } from 'vitest';
import { simulate, type Policy, type SimulationResult } from '../../support/prefix-simulation.ts';

const SEEDS = [1, 2, 3, 4, 5];

/** The mean of five runs. The tail of one run is a few calls. */
function simulateAll(policy: Policy, conversations: number): SimulationResult {
  const runs = SEEDS.map((seed) => simulate({ engines: 4, conversations, turns: 8, seed, policy }));
  const mean = (pick: (run: SimulationResult) => number) => runs.reduce((sum, run) => sum + pick(run), 0) / runs.length;
  return { mean: mean((run) => run.mean), p99: mean((run) => run.p99), hitRate: mean((run) => run.hitRate) };
}

describe('multi-turn traffic on four engines with a prefix cache', () => {
  // From idle to twice the capacity of the engines.
  it.each([10, 20, 40, 60, 80])('waits less than with least load, %d conversations at once', (conversations) => {
    const prefix = simulateAll('prefix', conversations);
    const least = simulateAll('least-load', conversations);
    const robin = simulateAll('round-robin', conversations);
    expect(prefix.mean).toBeLessThan(least.mean);
    expect(prefix.mean).toBeLessThan(robin.mean);
    expect(prefix.p99).toBeLessThanOrEqual(1.1 * least.p99);
    expect(prefix.hitRate).toBeGreaterThan(least.hitRate);
  });
});
