import { addAmounts, type Amounts } from './amounts.ts';
import { candidates, type Market, type PlaceRequest } from './grant.ts';
import type { ClaimHolding } from './holdings.ts';
import { amountsOfClaim, type NodeView, placesOn, withoutLeaving } from './node-view.ts';

/** What makes room for an on-demand instance. */
export type Preemption =
  /** Interruptible instances of one node whose leaving makes the place. */
  | { victims: readonly ClaimHolding[]; node: string }
  /** A place becomes free on this node as soon as those that leave have left. */
  | { leaving: string };

// Latest first: whoever has run longest keeps its place.
function newestFirst(a: ClaimHolding, b: ClaimHolding): number {
  return a.claim.grantedAt < b.claim.grantedAt
    ? 1
    : a.claim.grantedAt > b.claim.grantedAt
      ? -1
      : a.key < b.key
        ? 1
        : -1;
}

/** Fewer who must go; of as many, those who came last. */
function isMilder(victims: readonly ClaimHolding[], than: readonly ClaimHolding[]): boolean {
  if (victims.length !== than.length) return victims.length < than.length;
  return (victims.at(-1)?.claim.grantedAt ?? '') > (than.at(-1)?.claim.grantedAt ?? '');
}

function afterLeaving(view: NodeView, victims: readonly ClaimHolding[]): NodeView {
  const leaving = victims.reduce<Amounts>(
    (sum, { claim, ephemeralGb }) => addAmounts(sum, amountsOfClaim(view.facts, claim, ephemeralGb)),
    view.leaving,
  );
  return withoutLeaving({ ...view, leaving });
}

/**
 * Which interruptible instances to take the GPUs from so that an on-demand request gets a place: those of the node where
 * the fewest must go. Undefined when no node would do. Instances that are leaving already are waited for first, so that
 * nobody is sent away twice for one place.
 */
export function preempt(
  market: Market,
  request: PlaceRequest,
  holdingsOn: (node: string) => readonly ClaimHolding[],
): Preemption | undefined {
  let best: { victims: ClaimHolding[]; node: string } | undefined;
  for (const klass of candidates(market, request)) {
    for (const { node, resource } of klass.members) {
      const view = market.viewOf(node);
      if (view === undefined || (request.only !== undefined && !request.only.has(node))) continue;
      const share = { resource, count: klass.gpuCount };
      if (placesOn(withoutLeaving(view), share) > 0) return { leaving: node };
      const victims: ClaimHolding[] = [];
      for (const holding of holdingsOn(node).toSorted(newestFirst)) {
        if (!holding.interruptible || holding.leaving || holding.claim.resourceName !== klass.resourceName) continue;
        victims.push(holding);
        if (placesOn(afterLeaving(view, victims), share) === 0) continue;
        if (best === undefined || isMilder(victims, best.victims)) best = { victims: [...victims], node };
        break;
      }
    }
  }
  return best;
}
