import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

export default defineConfig({
  test: {
    reporters: ['default', new ClosingLine()],
    name: 'faults',
    include: ['test/faults/**/*.test.ts'],
    globalSetup: ['test/integration/cluster.ts', 'test/faults/support/prepare.ts'],
    testTimeout: 180_000,
    hookTimeout: 120_000,
    // One set of controllers at a time: each test decides who leads.
    fileParallelism: false,
  },
});
