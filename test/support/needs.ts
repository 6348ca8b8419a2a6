import { describe, inject } from 'vitest';
import type { Need } from './packages.ts';

/** `describe` where everything named is here, else `describe.skip`. */
export function describeWith(...needs: readonly Need[]): typeof describe.skip {
  const absent = inject('absent');
  return needs.some((need) => absent.includes(need)) ? describe.skip : describe;
}
