import { randomBytes } from 'node:crypto';

const PROCESS = randomBytes(10).toString('hex');
let count = 0;

/** Unique over all processes, `[0-9a-f]+`. A random number for each call would cost more than the look-up of its key. */
export function nextCallId(): string {
  count += 1;
  return `${PROCESS}${count.toString(16).padStart(12, '0')}`;
}
