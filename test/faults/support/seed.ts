import { randomInt } from 'node:crypto';

/**
 * Seed of this run: BERTH_FAULT_SEED to repeat one, else a new one. Printed once, so that a failure can be repeated.
 */
export const SEED = Number(process.env['BERTH_FAULT_SEED'] ?? randomInt(2 ** 31));

/** With an even seed admission adds the finalizers, and the pod of a first start bears the claim. */
export function isEven(seed: number): boolean {
  return seed % 2 === 0;
}

/** How many times as long the suite tries what more tries make surer: crashes, callers, gangs, bytes. One run of all tests has time for 1. */
export const SHARE = Number(process.env['BERTH_FAULT_SHARE'] ?? 1);
