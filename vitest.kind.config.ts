import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';
import { keptResults, NATIVE_IMPORTS, PROGRAM_CACHE } from './test/support/running.ts';

/** `npm run test:kind`: the local cluster on kind. */
export default defineConfig({
  test: {
    name: 'kind',
    ...NATIVE_IMPORTS,
    reporters: ['verbose', ...keptResults(), new ClosingLine()],
    include: ['test/kind/**/*.test.ts'],
    env: PROGRAM_CACHE,
    testTimeout: 240_000,
    hookTimeout: 600_000,
    // The tests build on each other.
    bail: 1,
  },
});
