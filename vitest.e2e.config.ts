import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ClosingLine } from './test/support/closing-line.ts';
import { keptResults, NATIVE_IMPORTS, PROGRAM_CACHE } from './test/support/running.ts';

/** By name, the same in each run: files install and upgrade the release on one cluster. */
class ByName extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1)));
  }
}

/** `npm run e2e`: the released image and chart on a cluster of their own. Not part of `npm test`: it takes minutes. */
export default defineConfig({
  test: {
    name: 'e2e',
    ...NATIVE_IMPORTS,
    reporters: ['verbose', ...keptResults(), new ClosingLine()],
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: ['test/e2e/setup.ts'],
    env: PROGRAM_CACHE,
    testTimeout: 480_000,
    hookTimeout: 600_000,
    // The tests build on each other: after one that fails, the others mean nothing.
    bail: 1,
    fileParallelism: false,
    sequence: { sequencer: ByName },
  },
});
