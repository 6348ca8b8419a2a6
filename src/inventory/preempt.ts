import { compareText } from '../lib/compare.ts';
import { addAmounts, type Amounts } from './amounts.ts';
import { candidates, diskFor, type Market, type Place, type PlaceRequest } from './grant.ts';
import type { ClaimHolding } from './holdings.ts';
import { amountsOfClaim, type NodeView, withoutLeaving } from './nodes/node-view.ts';

/** What makes room for an on-demand instance. */
export interface Preemption {
  /** What the request gets then. */
  place: Place;
  /** Interruptible instances of one node that must go; none when those that are leaving already are enough. */
  victims: readonly ClaimHolding[];
}

// The instance that has run longest keeps its place.
function newestFirst(a: ClaimHolding, b: ClaimHolding): number {
  return compareText(b.claim.grantedAt, a.claim.grantedAt) || compareText(b.key, a.key);
}

/** Whether fewer instances must go, or as many that came later. */
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
 * The interruptible instances that must go for an on-demand request, on the node where the fewest must. None goes for a
 * place that {@link grant} would refuse, nor where instances that are leaving already make room.
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
