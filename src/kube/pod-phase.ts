import type { Pod } from './types.ts';

/** Whether no program of the pod runs any more, as its phase says. */
export function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
