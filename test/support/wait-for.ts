import { setTimeout as delay } from 'node:timers/promises';

/** Waits until `condition` gives a value that is not false, null or undefined; fails with its name after `ms`. */
export async function waitFor<T>(
  name: string,
  condition: () => T | Promise<T>,
  ms = 30_000,
): Promise<Exclude<T, false | null | undefined>> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) return value as Exclude<T, false | null | undefined>;
    await delay(10);
  }
  throw new Error(`Waited ${ms} ms in vain for: ${name}`);
}
