import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';
import { clusterWorkers, keptResults, PROGRAM_CACHE } from './test/support/running.ts';

export default defineConfig({
  test: {
    reporters: ['default', ...keptResults(), new ClosingLine()],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'src/**/*.test.ts'],
          globalSetup: ['test/support/provide-needs.ts'],
          env: PROGRAM_CACHE,
          // Long enough for a busy machine, and a test that hangs still fails.
          testTimeout: 60_000,
          // They compute. Vitest would leave one core to itself.
          maxWorkers: availableParallelism(),
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/integration/cluster.ts', 'test/integration/replicas.ts'],
          setupFiles: ['test/support/own-cluster.ts', 'test/support/fleet-at-rest.ts'],
          env: PROGRAM_CACHE,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          // They wait most of the time. Each worker has a cluster of its own, because files run controllers of their own.
          maxWorkers: clusterWorkers(4),
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
