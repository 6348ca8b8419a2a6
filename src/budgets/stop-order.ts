import { compareText } from '../lib/compare.ts';
import { keyOf } from '../kube/types.ts';
import type { Holder } from './kept-accounts.ts';

/**
 * The keys of the instances that hold a place, in the order in which a spent budget stops them: interruptible ones
 * first, and of each type the start that began last first.
 */
export function stopOrder(holders: readonly Holder[]): string[] {
  return holders
    .flatMap(({ instance, claim }) => {
      if (claim === undefined || instance.status?.ending !== undefined) return [];
      const type = instance.spec.type === 'Interruptible' ? 0 : 1;
      return [{ key: keyOf(instance), type, grantedAt: Date.parse(claim.grantedAt) }];
    })
    .toSorted((a, b) => a.type - b.type || b.grantedAt - a.grantedAt || compareText(a.key, b.key))
    .map(({ key }) => key);
}
