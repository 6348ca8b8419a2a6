import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';
import { clusterWorkers, keptResults, NATIVE_IMPORTS, PROGRAM_CACHE } from './test/support/running.ts';

export default defineConfig({
  test: {
    reporters: ['default', ...keptResults(), new ClosingLine()],
    name: 'faults',
    ...NATIVE_IMPORTS,
    include: ['test/faults/**/*.test.ts'],
    globalSetup: ['test/integration/cluster.ts', 'test/faults/support/prepare.ts'],
    setupFiles: ['test/support/own-cluster.ts'],
    isolate: false,
    env: PROGRAM_CACHE,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // One set of controllers at a time on a cluster: each test decides who leads.
    maxWorkers: clusterWorkers(2),
  },
});
