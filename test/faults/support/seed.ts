import { randomInt } from 'node:crypto';

/**
 * Seed of this run: BERTH_FAULT_SEED to repeat one, else a new one. Printed once, so that a failure can be repeated.
 */
export const SEED = Number(process.env['BERTH_FAULT_SEED'] ?? randomInt(2 ** 31));

/** With an even seed admission adds the finalizers, and the pod of a first start bears the claim. */
export function isEven(seed: number): boolean {
  return seed % 2 === 0;
}
