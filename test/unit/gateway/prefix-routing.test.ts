import { describe, expect, it } from 'vitest';
import { simulate } from '../../support/prefix-simulation.ts';

const LOADS = [10, 20, 40].flatMap((conversations) => [1, 2, 3].map((seed) => ({ conversations, seed })));

describe('multi-turn traffic on four engines with a prefix cache', () => {
  it.each(LOADS)(
    'waits less than with least load: $conversations conversations, seed $seed',
    ({ conversations, seed }) => {
      const options = { engines: 4, conversations, turns: 8, seed };
      const prefix = simulate({ ...options, policy: 'prefix' });
      const least = simulate({ ...options, policy: 'least-load' });
      const robin = simulate({ ...options, policy: 'round-robin' });
      expect(prefix.mean).toBeLessThan(least.mean);
      expect(prefix.mean).toBeLessThan(robin.mean);
      expect(prefix.p99).toBeLessThanOrEqual(1.1 * least.p99);
      expect(prefix.hitRate).toBeGreaterThan(least.hitRate);
    },
  );
});
