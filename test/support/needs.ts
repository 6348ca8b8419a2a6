import { describe, inject, test } from 'vitest';
import type { RequirementName } from '../../tools/lib/host/requirements.ts';
import type { Shortage } from './shortage.ts';

/** What a test may need that a machine may lack. */
export type Need = RequirementName | 'real node';

declare module 'vitest' {
  interface ProvidedContext {
    absent: readonly Need[];
    shortage: Shortage | undefined;
  }
}

function lacks(needs: readonly Need[]): boolean {
  const absent = inject('absent');
  return needs.some((need) => absent.includes(need));
}

/** `describe` where everything named is here, else `describe.skip`. */
export function describeWith(...needs: readonly Need[]): typeof describe.skip {
  return lacks(needs) ? describe.skip : describe;
}

/** `test` where everything named is here, else `test.skip`. */
export function testWith(...needs: readonly Need[]): typeof test.skip {
  return lacks(needs) ? test.skip : test;
}
