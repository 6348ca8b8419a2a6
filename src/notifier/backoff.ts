/** Milliseconds until a target that took no event is tried again: at first, and at most. */
const FIRST_MS = 5_000;
const MOST_MS = 60 * 60_000;
/** Part of a wait by which targets differ, so that they do not meet again. */
const JITTER = 0.25;

/**
 * Milliseconds until the next try.
 *
 * @param failures in a row, from 1
 * @param random uniform in [0, 1)
 * @param askedMs what the target asked for, if it did
 */
export function waitMs(failures: number, random: number, askedMs = 0): number {
  const wait = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 20));
  return Math.min(MOST_MS, Math.max(askedMs, wait * (1 - random * JITTER)));
}
