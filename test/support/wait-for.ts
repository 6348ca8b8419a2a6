import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until `condition` gives a value that is not false, null or undefined; fails with its name after `ms`. Only what
 * hangs waits so long: a machine that is slow and busy decides no test.
 */
export async function waitFor<T>(
  name: string,
  condition: () => T | Promise<T>,
  ms = 90_000,
): Promise<Exclude<T, false | null | undefined>> {
  const start = performance.now();
  for (let waited = 0; waited < ms; waited = performance.now() - start) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) return value as Exclude<T, false | null | undefined>;
    // Most conditions ask an API server. Those that take long are asked less often, at the price of a twentieth.
    await delay(Math.min(100, 10 + waited / 20));
  }
  throw new Error(`Waited ${ms} ms in vain for: ${name}`);
}
