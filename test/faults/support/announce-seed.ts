import type { TestProject } from 'vitest/node';
import { SEED } from './seed.ts';

declare module 'vitest' {
  interface ProvidedContext {
    seed: number;
  }
}

/** One seed for the whole run, told at its start. */
export function setup(project: TestProject): void {
  project.provide('seed', SEED);
  process.stderr.write(`Fault suite: seed ${SEED}; BERTH_FAULT_SEED=${SEED} repeats it.\n`);
}
