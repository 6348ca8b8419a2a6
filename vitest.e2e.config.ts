import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

/** `npm run e2e`: the released image and chart on a cluster of their own. Not part of `npm test`: it takes minutes. */
export default defineConfig({
  test: {
    name: 'e2e',
    reporters: ['verbose', new ClosingLine()],
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: ['test/e2e/setup.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    // The tests build on each other: after one that fails, the others mean nothing.
    bail: 1,
    fileParallelism: false,
  },
});
