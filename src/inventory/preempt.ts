import { addAmounts, type Amounts, subtractAmounts } from './amounts.ts';
import { freedBeside, leastOf, waysTo } from './devices/held-gpus.ts';
import { fractionOf } from '../resources/money.ts';
import {
  candidates,
  diskFor,
  type Market,
  type Place,
  type PlaceRequest,
  type Reservation,
  type ReservedOn,
} from './grant.ts';
import { type ClaimHolding, gpusLeftBy, leftBy, unplacedOf } from './holdings.ts';
import { type ClaimsOn, type Movable, movableOn, newestFirst } from './movable.ts';
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
  claimsOn: ClaimsOn;
  /** What goes to other waiting instances. Those that leave for them count as leaving, told or not. */
  reservedOn: ReservedOn;
  /** Milliseconds since the epoch. */
  now: number;
  /** The first place will do, whatever instances must go for it. */
  isAnyGood: boolean;
  /** A place that is free already will do, too. */
  orFree: boolean;
}

function split<T>(all: readonly T[], is: (one: T) => boolean): [T[], T[]] {
  return [all.filter((one) => is(one)), all.filter((one) => !is(one))];
}

/** Whether devices of a resource have counters that those of others need. */
function isShared({ facts }: NodeView, resourceName: string): boolean {
  return resourceName in facts.rivals;
}

/** By view and resources: nodes as they are once what is interruptible on them has ended. */
const yielded = new WeakMap<NodeView, Map<string, NodeView | undefined>>();

/** The node without the interruptible instances on this resource, and on parts of its GPUs; undefined when there are none. */
function yieldedOn(view: NodeView, resourceName: string, claimsOn: ClaimsOn): NodeView | undefined {
  const { facts } = view;
  const names = new Set([resourceName, ...Object.keys(facts.rivals[resourceName] ?? {})]);
  const of = [...names].toSorted().join(' ');
  const known = yielded.get(view) ?? new Map<string, NodeView | undefined>();
  yielded.set(view, known);
  if (!known.has(of)) {
    const { interruptible, yielding } = movableOn(view, claimsOn);
    const able = isShared(view, resourceName) ? new Set(yielding.values()) : interruptible;
    const leaving = new Set([...able].filter(({ claim }) => names.has(claim.resourceName)));
    const gone = new Set([...yielding].flatMap(([id, owner]) => (leaving.has(owner) ? id : [])));
    const freed = facts.held === undefined ? {} : freedBeside(facts.held, gone);
    const left = [freed, ...[...leaving].map((holding) => leftBy(facts, holding))];
    known.set(of, leaving.size === 0 ? undefined : { ...view, used: left.reduce(subtractAmounts, view.used) });
  }
  return known.get(of);
}

/** How many more on-demand instances with this share a node would take: interruptible ones end for them. */
export function placesByPreemption(view: NodeView, share: Share, claimsOn: ClaimsOn): number {
  const without = yieldedOn(view, share.resource.resourceName, claimsOn);
  return without === undefined ? 0 : placesOn(without, share) - placesOn(view, share);
}

function largestPart(victims: readonly ClaimHolding[]): number {
  return victims.reduce((most, { claim }) => Math.max(most, fractionOf(claim.gpuShare)), 0);
}

function oldestGrant(victims: readonly ClaimHolding[]): string {
  return victims.reduce((first, { claim: { grantedAt } }) => (grantedAt < first ? grantedAt : first), '~');
}

/** Whether fewer instances must go, or as many with smaller parts of GPUs, or as many that came later. */
function isMilder(victims: readonly ClaimHolding[], than: readonly ClaimHolding[]): boolean {
  if (victims.length !== than.length) return victims.length < than.length;
  const [part, other] = [largestPart(victims), largestPart(than)];
  return part === other ? oldestGrant(victims) > oldestGrant(than) : part < other;
}

/** A node as a request sees it. */
interface Seen {
  offerClass: OfferClass;
  view: NodeView;
  reserved: readonly Reservation[];
  movable: Movable;
}

/** One node, seen by one request: what is taken on it, and what would be taken without some claims. */
class Room {
  readonly #market: Market;
  readonly #request: PlaceRequest;
  readonly #seen: Seen;
  readonly #gone: Set<string>;
  #used: Amounts;
  /** What the devices that are gone leave to others; undefined after a change. */
  #freed: Amounts | undefined;

  constructor(market: Market, request: PlaceRequest, seen: Seen) {
    const { view, reserved, movable } = seen;
    this.#market = market;
    this.#request = request;
    this.#seen = seen;
    this.#gone = new Set(movable.orphaned);
    this.#used = view.used;
    for (const { takes } of reserved) this.#used = addAmounts(this.#used, takes);
    for (const { resourceName, devices } of this.#gone.size === 0 ? [] : (view.facts.held?.groups ?? [])) {
      const pieces = devices.filter(({ id }) => this.#gone.has(id)).length;
      this.#used = subtractAmounts(this.#used, { [resourceName]: pieces });
    }
  }

  /** The devices that were given back. */
  get gone(): ReadonlySet<string> {
    return this.#gone;
  }

  /** It is leaving, whether it has a device or not. */
  withoutLeaving(holding: ClaimHolding): void {
    this.without(holding);
    this.#used = subtractAmounts(this.#used, unplacedOf(this.#seen.view.facts, holding));
  }

  without(holding: ClaimHolding): void {
    const { view, movable } = this.#seen;
    this.#used = subtractAmounts(this.#used, leftBy(view.facts, holding));
    for (const [id, owner] of movable.owners) if (owner === holding) this.#gone.add(id);
    this.#freed = undefined;
  }

  get #taken(): Amounts {
    const { held } = this.#seen.view.facts;
    if (held === undefined || this.#gone.size === 0) return this.#used;
    this.#freed ??= freedBeside(held, this.#gone);
    return subtractAmounts(this.#used, this.#freed);
  }

  /** GPUs that the request needs and the node does not have free. */
  get missing(): number {
    const { gpuCount, resourceName } = this.#seen.offerClass;
    return gpuCount - ((this.#seen.view.facts.allocatable[resourceName] ?? 0) - (this.#taken[resourceName] ?? 0));
  }

  /** The place for the request; undefined while there is none. */
  place(resource: OfferClass['members'][number]['resource']): Omit<Preemption, 'victims'> | undefined {
    const { view, offerClass } = this.#seen;
    const { facts } = view;
    if (this.missing > 0) return undefined;
    const share = { resource, count: offerClass.gpuCount };
    const disk = diskFor(this.#market, { ...view, used: this.#taken }, share, this.#request);
    if (disk === undefined) return undefined;
    return {
      place: { offerClass, node: facts.name, diskGbMax: disk.maxGb, diskPersistent: disk.persistent },
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
      const movable = movableOn(view, claimsOn);
      const { leaving, orphaned } = movable;
      const reserved = [...reservedOn(node)];
      const isChosen = ({ key }: ClaimHolding): boolean => reserved.some(({ victims }) => victims.has(key));
      const [chosen, interruptible] =
        reserved.length === 0 ? [[], movable.interruptible] : split(movable.interruptible, isChosen);
      const going = [...leaving.filter(({ leavingSince = now }) => leavingSince + LEAVING_MS > now), ...chosen];
      const isComing = going.length > 0 || orphaned.size > 0 || orFree;
      if (interruptible.length === 0 && !isComing) continue;
      const open = (victims: readonly ClaimHolding[] = []): Room => {
        const room = new Room(market, request, { offerClass, view, reserved, movable });
        for (const holding of going) room.withoutLeaving(holding);
        for (const holding of victims) room.without(holding);
        return room;
      };
      yield { offerClass, resource, interruptible, isComing, open, view, movable };
    }
  }
}

type Opened = ReturnType<typeof rooms> extends Generator<infer T> ? T : never;

/** The first of the newest that leave so many GPUs of a resource, and then the others one by one. */
function* newestOf({ interruptible, offerClass, view }: Opened, missing: number): Generator<readonly ClaimHolding[]> {
  let first: ClaimHolding[] = [];
  let left = missing;
  for (const holding of interruptible) {
    const gpus = holding.claim.resourceName === offerClass.resourceName ? gpusLeftBy(view.facts, holding) : 0;
    if (gpus <= 0) continue;
    first.push(holding);
    left -= gpus;
    if (left > 0) continue;
    yield first;
    first = [];
  }
}

// A search looks at every node, and few of them change between two searches.
const mildest = new WeakMap<NodeView, Map<string, readonly ClaimHolding[] | undefined>>();

/** Those of whom the fewest must go for one more device of a resource; undefined when none would do. */
function mildestWay({ offerClass, view, movable }: Opened, gone: ReadonlySet<string>) {
  const { resourceName } = offerClass;
  const { yielding, orphaned } = movable;
  const known = mildest.get(view) ?? new Map<string, readonly ClaimHolding[] | undefined>();
  mildest.set(view, known);
  const isFirst = gone.size === orphaned.size;
  if (isFirst && known.has(resourceName)) return known.get(resourceName);
  // Whoever has the most is not spared first: fewer must go.
  const order = (a: ClaimHolding, b: ClaimHolding): number =>
    fractionOf(a.claim.gpuShare) - fractionOf(b.claim.gpuShare) || newestFirst(b, a);
  let best: readonly ClaimHolding[] | undefined;
  for (const way of view.facts.held === undefined
    ? []
    : waysTo(view.facts.held, resourceName, { gone, yielding, order }))
    if (best === undefined || isMilder(way, best)) best = way;
  if (isFirst) known.set(resourceName, best);
  return best;
}

/** Who might go, one after the other, until there is room: always as few as bring one more GPU. */
function* waysIn(opened: Opened, room: Room): Generator<readonly ClaimHolding[]> {
  if (!isShared(opened.view, opened.offerClass.resourceName)) {
    yield* newestOf(opened, room.missing);
    return;
  }
  for (let way = mildestWay(opened, room.gone); way !== undefined; way = mildestWay(opened, room.gone)) yield way;
}

interface Found {
  preemption: Preemption;
  opened: Opened;
}

/** Those that may go for a place on a node; undefined when none do, or when it is not milder than what was found. */
function foundOn(opened: Opened, best: Found | undefined): Found | undefined {
  const { open, resource } = opened;
  const room = open();
  const victims: ClaimHolding[] = [];
  for (const way of waysIn(opened, room)) {
    victims.push(...way);
    if (best !== undefined && !isMilder(victims, best.preemption.victims)) return undefined;
    for (const holding of way) room.without(holding);
    const place = room.place(resource);
    if (place !== undefined) return { preemption: { ...place, victims }, opened };
  }
  return undefined;
}

/** The same without those whom the others make needless: whoever has run longest stays first. */
function needed({ preemption, opened: { open, resource } }: Found): Preemption {
  const { victims } = preemption;
  if (victims.length === 1) return preemption;
  const oldestFirst = victims.toSorted((a, b) => newestFirst(b, a));
  const least = leastOf(oldestFirst, (some) => open(some).place(resource) !== undefined);
  return { ...preemption, victims: least.toSorted(newestFirst) };
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
  let best: Found | undefined;
  for (const opened of all) {
    best = foundOn(opened, best) ?? best;
    if (best !== undefined && options.isAnyGood) break;
  }
  return best && needed(best);
}
