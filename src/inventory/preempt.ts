import { addAmounts, type Amounts } from './amounts.ts';
import { candidates, diskFor, type Market, type Place, type PlaceRequest } from './grant.ts';
import type { ClaimHolding } from './holdings.ts';
import { amountsOfClaim, type NodeView, withoutLeaving } from './nodes/node-view.ts';

/** What makes room for an on-demand instance. */
export interface Preemption {
  /** What the request can have then. */
  place: Place;
  /** Interruptible instances of one node that must go; none when those that leave already are enough. */
  victims: readonly ClaimHolding[];
}

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
 * the fewest must go. Undefined when no node would do: what {@link grant} would refuse there is no reason to send anybody
 * away. Instances that are leaving already are waited for first, so that nobody is sent away twice for one place.
 */
export function preempt(
  market: Market,
  request: PlaceRequest,
  holdingsOn: (node: string) => readonly ClaimHolding[],
): Preemption | undefined {
  let best: Preemption | undefined;
  for (const offerClass of candidates(market, request)) {
    for (const { node, resource } of offerClass.members) {
      const view = market.viewOf(node);
      if (view === undefined) continue;
      const placeIn = (freed: NodeView): Place | undefined => {
        const disk = diskFor(market, freed, { resource, count: offerClass.gpuCount }, request);
        if (typeof disk === 'string') return undefined;
        return { offerClass, node, diskGbMax: disk.maxGb, diskPersistent: disk.persistent };
      };
      const waitedFor = placeIn(withoutLeaving(view));
      if (waitedFor !== undefined) return { place: waitedFor, victims: [] };
      const victims: ClaimHolding[] = [];
      for (const holding of holdingsOn(node).toSorted(newestFirst)) {
        if (!holding.interruptible || holding.leaving || holding.claim.resourceName !== offerClass.resourceName)
          continue;
        victims.push(holding);
        const place = placeIn(afterLeaving(view, victims));
        if (place === undefined) continue;
        if (best === undefined || isMilder(victims, best.victims)) best = { place, victims: [...victims] };
        break;
      }
    }
  }
  return best;
}
