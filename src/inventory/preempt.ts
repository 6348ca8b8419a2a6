import { compareText } from '../lib/compare.ts';
import { addAmounts, type Amounts, subtractAmounts } from './amounts.ts';
import {
  candidates,
  diskFor,
  type Market,
  type Place,
  type PlaceRequest,
  type Reservation,
  type ReservedOn,
} from './grant.ts';
import { type ClaimHolding, gpusLeftBy, leftBy } from './holdings.ts';
import { type NodeView, placesOn, type Share, takesOf } from './nodes/node-view.ts';
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
  /** What goes to other waiting instances. Those that leave for them count as leaving, told or not. */
  reservedOn: ReservedOn;
  /** Milliseconds since the epoch. */
  now: number;
  /** The first place will do, whatever instances must go for it. */
  isAnyGood: boolean;
  /** A place that is free already will do, too. */
  orFree: boolean;
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

function split<T>(all: readonly T[], is: (one: T) => boolean): [T[], T[]] {
  return [all.filter((one) => is(one)), all.filter((one) => !is(one))];
}

/** By view and resource: nodes as they are once what is interruptible on them has ended. */
const yielded = new WeakMap<NodeView, Map<string, NodeView | undefined>>();

/** The node without the interruptible instances on this resource; undefined when there are none. */
function yieldedOn(view: NodeView, resourceName: string, claimsOn: PreemptOptions['claimsOn']): NodeView | undefined {
  const known = yielded.get(view) ?? new Map<string, NodeView | undefined>();
  yielded.set(view, known);
  if (!known.has(resourceName)) {
    const yielding = movableOn(view, claimsOn).interruptible.filter(({ claim }) => claim.resourceName === resourceName);
    const used = yielding.reduce((left, holding) => subtractAmounts(left, leftBy(view.facts, holding)), view.used);
    known.set(resourceName, yielding.length === 0 ? undefined : { ...view, used });
  }
  return known.get(resourceName);
}

/** How many more on-demand instances with this share a node would take: interruptible ones end for them. */
export function placesByPreemption(view: NodeView, share: Share, claimsOn: PreemptOptions['claimsOn']): number {
  const without = yieldedOn(view, share.resource.resourceName, claimsOn);
  return without === undefined ? 0 : placesOn(without, share) - placesOn(view, share);
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
    { offerClass, view, reserved }: { offerClass: OfferClass; view: NodeView; reserved: readonly Reservation[] },
  ) {
    this.#market = market;
    this.#request = request;
    this.#offerClass = offerClass;
    this.#view = view;
    this.#used = view.used;
    for (const { takes } of reserved) this.#used = addAmounts(this.#used, takes);
  }

  without(holding: ClaimHolding): void {
    this.#used = subtractAmounts(this.#used, leftBy(this.#view.facts, holding));
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
      takes: takesOf(facts, share, disk.persistent ? 0 : this.#request.diskGb),
    };
  }
}

/** Every node that the request could use, with what could move there. */
function* rooms(market: Market, request: PlaceRequest, { claimsOn, reservedOn, now, orFree }: PreemptOptions) {
  for (const offerClass of candidates(market, request)) {
    for (const { node, resource } of offerClass.members) {
      const view = request.only?.has(node) === false ? undefined : market.viewOf(node);
      if (view === undefined) continue;
      const { interruptible: movable, leaving } = movableOn(view, claimsOn);
      const reserved = [...reservedOn(node)];
      const isChosen = ({ key }: ClaimHolding): boolean => reserved.some(({ victims }) => victims.has(key));
      const [chosen, interruptible] = reserved.length === 0 ? [[], movable] : split(movable, isChosen);
      const going = [...leaving.filter(({ leavingSince = now }) => leavingSince + LEAVING_MS > now), ...chosen];
      if (interruptible.length === 0 && going.length === 0 && !orFree) continue;
      const open = (): Room => {
        const room = new Room(market, request, { offerClass, view, reserved });
        for (const holding of going) room.without(holding);
        return room;
      };
      yield { offerClass, resource, interruptible, isComing: going.length > 0 || orFree, open, facts: view.facts };
    }
  }
}

/**
 * The interruptible instances that must go for an on-demand request, on the node where the fewest must. None goes for a
 * place that {@link grant} would refuse, nor where instances that are leaving already make room.
 */
export function preempt(market: Market, request: PlaceRequest, options: PreemptOptions): Preemption | undefined {
  const all = [...rooms(market, request, options)];
  for (const { isComing, open, resource } of all) {
    const found = isComing ? open().place(resource) : undefined;
    if (found !== undefined) return { ...found, victims: [] };
  }
  let best: Preemption | undefined;
  for (const { offerClass, resource, interruptible, open, facts } of all) {
    const room = open();
    const victims: ClaimHolding[] = [];
    let missing = room.missing;
    let removed = 0;
    for (const holding of interruptible) {
      if (holding.claim.resourceName !== offerClass.resourceName) continue;
      const gpus = gpusLeftBy(facts, holding);
      if (gpus <= 0) continue;
      victims.push(holding);
      missing -= gpus;
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
