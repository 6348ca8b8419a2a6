import { compareText } from '../lib/compare.ts';
import { addAmounts, type Amounts, subtractAmounts } from './amounts.ts';
import { candidates, diskFor, type Market, type Place, type PlaceRequest } from './grant.ts';
import type { ClaimHolding } from './holdings.ts';
import { amountsOfClaim, type NodeView, requestsOf } from './nodes/node-view.ts';
import type { OfferClass } from './offers.ts';

/** What makes room for an on-demand instance. */
export interface Preemption {
  /** What the request gets then. */
  place: Place;
  /** What it takes of the node. */
  takes: Amounts;
  /** Interruptible instances of one node that must go; none when those that are leaving already are enough. */
  victims: readonly ClaimHolding[];
}

/** A pod gets 30 seconds to end. One that takes twice as long may never end, and no place is waited for behind it. */
export const LEAVING_MS = 60_000;

export interface PreemptOptions {
  claimsOn: (node: string) => readonly ClaimHolding[];
  /** What other waiting instances are to get of a node when its leaving instances have gone. */
  reservedOn: (node: string) => Iterable<Amounts>;
  /** Milliseconds since the epoch. */
  now: number;
  /** The first place will do, whatever instances must go for it. */
  isAnyGood: boolean;
}

interface Movable {
  /** Interruptible instances, the newest first: the instance that has run longest keeps its place. */
  interruptible: readonly ClaimHolding[];
  leaving: readonly ClaimHolding[];
}

// A search looks at every node. A view lasts until its claims change.
const movables = new WeakMap<NodeView, Movable>();

function newestFirst(a: ClaimHolding, b: ClaimHolding): number {
  return compareText(b.claim.grantedAt, a.claim.grantedAt) || compareText(b.key, a.key);
}

function movableOn(view: NodeView, claimsOn: PreemptOptions['claimsOn']): Movable {
  let known = movables.get(view);
  if (known === undefined) {
    const claims = claimsOn(view.facts.name);
    known = {
      interruptible: claims.filter((one) => one.interruptible && one.leavingSince === undefined).toSorted(newestFirst),
      leaving: claims.filter(({ leavingSince }) => leavingSince !== undefined),
    };
    movables.set(view, known);
  }
  return known;
}

/** Whether fewer instances must go, or as many that came later. */
function isMilder(victims: readonly ClaimHolding[], than: readonly ClaimHolding[]): boolean {
  if (victims.length !== than.length) return victims.length < than.length;
  return (victims.at(-1)?.claim.grantedAt ?? '') > (than.at(-1)?.claim.grantedAt ?? '');
}

/** One node, seen by one request: what is taken on it, and what would be taken without some claims. */
class Room {
  readonly #market: Market;
  readonly #request: PlaceRequest;
  readonly #offerClass: OfferClass;
  readonly #view: NodeView;
  #used: Amounts;

  constructor(
    market: Market,
    request: PlaceRequest,
    { offerClass, view, reserved }: { offerClass: OfferClass; view: NodeView; reserved: Iterable<Amounts> },
  ) {
    this.#market = market;
    this.#request = request;
    this.#offerClass = offerClass;
    this.#view = view;
    this.#used = view.used;
    for (const amounts of reserved) this.#used = addAmounts(this.#used, amounts);
  }

  without({ claim, ephemeralGb }: ClaimHolding): void {
    this.#used = subtractAmounts(this.#used, amountsOfClaim(this.#view.facts, claim, ephemeralGb));
  }

  /** GPUs that the request needs and the node does not have free. */
  get missing(): number {
    const { gpuCount, resourceName } = this.#offerClass;
    return gpuCount - ((this.#view.facts.allocatable[resourceName] ?? 0) - (this.#used[resourceName] ?? 0));
  }

  /** The place for the request; undefined while there is none. */
  place(resource: OfferClass['members'][number]['resource']): Omit<Preemption, 'victims'> | undefined {
    const { facts } = this.#view;
    if (this.missing > 0) return undefined;
    const share = { resource, count: this.#offerClass.gpuCount };
    const disk = diskFor(this.#market, { ...this.#view, used: this.#used }, share, this.#request);
    if (disk === undefined) return undefined;
    return {
      place: { offerClass: this.#offerClass, node: facts.name, diskGbMax: disk.maxGb, diskPersistent: disk.persistent },
      takes: requestsOf(facts, share, disk.persistent ? 0 : this.#request.diskGb),
    };
  }
}

/** Every node that the request could use, with what could move there. */
function* rooms(market: Market, request: PlaceRequest, { claimsOn, reservedOn, now }: PreemptOptions) {
  for (const offerClass of candidates(market, request)) {
    for (const { node, resource } of offerClass.members) {
      const view = request.only?.has(node) === false ? undefined : market.viewOf(node);
      if (view === undefined) continue;
      const { interruptible, leaving } = movableOn(view, claimsOn);
      const going = leaving.filter(({ leavingSince = now }) => leavingSince + LEAVING_MS > now);
      if (interruptible.length === 0 && going.length === 0) continue;
      const open = (): Room => {
        const room = new Room(market, request, { offerClass, view, reserved: reservedOn(node) });
        for (const holding of going) room.without(holding);
        return room;
      };
      yield { offerClass, resource, interruptible, isLeaving: going.length > 0, open };
    }
  }
}

/**
 * The interruptible instances that must go for an on-demand request, on the node where the fewest must. None goes for a
 * place that {@link grant} would refuse, nor where instances that are leaving already make room.
 */
export function preempt(market: Market, request: PlaceRequest, options: PreemptOptions): Preemption | undefined {
  const all = [...rooms(market, request, options)];
  for (const { isLeaving, open, resource } of all) {
    const found = isLeaving ? open().place(resource) : undefined;
    if (found !== undefined) return { ...found, victims: [] };
  }
  let best: Preemption | undefined;
  for (const { offerClass, resource, interruptible, open } of all) {
    const room = open();
    const victims: ClaimHolding[] = [];
    let missing = room.missing;
    let removed = 0;
    for (const holding of interruptible) {
      if (holding.claim.resourceName !== offerClass.resourceName) continue;
      victims.push(holding);
      missing -= holding.claim.gpuCount;
      if (missing > 0) continue;
      if (best !== undefined && !isMilder(victims, best.victims)) break;
      for (; removed < victims.length; removed += 1) room.without(victims[removed] ?? holding);
      const found = room.place(resource);
      if (found === undefined) continue;
      best = { ...found, victims };
      break;
    }
    if (best !== undefined && options.isAnyGood) return best;
  }
  return best;
}
