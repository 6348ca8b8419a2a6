import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

export default defineConfig({
  test: {
    reporters: ['default', new ClosingLine()],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'src/**/*.test.ts'],
          globalSetup: ['test/support/provide-needs.ts'],
          // Long enough for a busy machine, and a test that hangs still fails.
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/integration/cluster.ts', 'test/integration/replicas.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          // The files share one cluster, and some of them run a controller of their own there.
          fileParallelism: false,
        },
      },
    ],
  },
});
