import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';
import { clusterWorkers, keptResults, NATIVE_IMPORTS, PROGRAM_CACHE } from './test/support/running.ts';

/** They put a module of their own in the place of one of Berth's, so that each needs a worker of its own. */
const MOCKED = ['test/unit/wire/model-endpoints.test.ts'];

export default defineConfig({
  test: {
    reporters: ['default', ...keptResults(), new ClosingLine()],
    projects: [
      {
        test: {
          name: 'unit',
          ...NATIVE_IMPORTS,
          include: ['test/unit/**/*.test.ts'],
          exclude: MOCKED,
          // A worker loads a module once for all its files. That is most of what they cost.
          isolate: false,
          globalSetup: ['test/support/provide-needs.ts'],
          env: PROGRAM_CACHE,
          // Long enough for a busy machine, and a test that hangs still fails.
          testTimeout: 120_000,
          // They compute. Vitest would leave one core to itself.
          maxWorkers: availableParallelism(),
        },
      },
      {
        test: {
          name: 'unit-mocked',
          include: MOCKED,
          testTimeout: 60_000,
          maxWorkers: availableParallelism(),
        },
      },
      {
        test: {
          name: 'integration',
          ...NATIVE_IMPORTS,
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/integration/cluster.ts', 'test/integration/replicas.ts'],
          setupFiles: ['test/support/own-cluster.ts', 'test/support/fleet-at-rest.ts'],
          isolate: false,
          env: PROGRAM_CACHE,
          // Twice what they take on a slow machine: one that hangs still fails.
          testTimeout: 180_000,
          hookTimeout: 300_000,
          // They wait most of the time. Each worker has a cluster of its own, because files run controllers of their own.
          maxWorkers: clusterWorkers(3),
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
