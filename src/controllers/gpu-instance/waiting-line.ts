import { compareText } from '../../lib/compare.ts';
import type { Clock } from '../../lib/clock.ts';
import { type Grant, type Place, type PlaceRequest, reservedOf, type ReservedOn } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { countBefore, rankOf } from '../../caches/line-order.ts';
import { LEAVING_MS, type Preemption } from '../../inventory/preempt.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import type { Reserved } from '../../resources/instances/line.ts';
import { rentedOf } from '../../resources/instances/rented.ts';
import { mayFail } from './decide/place.ts';
import { type ReservedPlace, ReservedPlaces } from './reserved-places.ts';

/** What is known of which sizes fit: with one that fits every smaller one does, with one that does not no larger one. */
class FittingSizes {
  #largestThatFits = Number.NEGATIVE_INFINITY;
  #smallestThatDoesNot = Number.POSITIVE_INFINITY;

  /** Undefined when it must be tried. */
  fits(size: number): boolean | undefined {
    if (size <= this.#largestThatFits) return true;
    return size >= this.#smallestThatDoesNot ? false : undefined;
  }

  note(size: number, fits: boolean): void {
    if (fits) this.#largestThatFits = Math.max(this.#largestThatFits, size);
    else this.#smallestThatDoesNot = Math.min(this.#smallestThatDoesNot, size);
  }
}

interface Asker {
  key: string;
  /** Sorts on-demand before interruptible, then older before younger. */
  rank: string;
  request: PlaceRequest;
}

interface Waiter extends Asker {
  instance: GpuInstance;
  group: Group;
  mayFail: boolean;
}

/**
 * Waiters whom the same offers serve, whatever their requests say, so that tenants cannot make each request one of its
 * own kind. They differ in the size of the disk at most, and in what decides nothing: image, nodes to avoid, and the disk
 * that was seen in the offer, which ends a request without a place.
 */
interface Group {
  key: string;
  /** By rank. */
  waiters: Waiter[];
  /** Whether an offer serves them, free or not. */
  isServed: boolean;
  known: Known;
}

/** What a group knows of free places, at one version of the inventory. */
interface Known {
  version: number;
  /** Which disks a free place has room for, reserved or not. */
  disks: FittingSizes;
  /** The version, with that of what is reserved. */
  state: string;
  /** The same beside what is reserved, by the number of places reserved for those ahead. */
  beside: Map<number, FittingSizes>;
}

/** Waiters that one look wakes. What they do changes the inventory, and the next look wakes others. */
const WAKE_LIMIT = 64;

/** How long a new leader gives nobody what may be for others that it has not looked at, milliseconds. */
const FIRST_LOOKS_MS = 10_000;

/** How long one look for preemptions may hold up everything else, milliseconds. The next look goes on there. */
const LOOK_MS = 50;

/** Index of the first waiter whose rank is not lower. */
function position(waiters: readonly Waiter[], rank: string): number {
  return countBefore(waiters.length, (index) => waiters[index]?.rank, rank);
}

type Supply = Pick<
  Inventory,
  'grant' | 'hasPlace' | 'placesFor' | 'preempt' | 'version' | 'classes' | 'offerIdsFor' | 'cheapest'
>;

/** Behind everybody: sorts after each rank. */
const LAST = '~';

/**
 * Instances that wait for a place, the first of the line first. One that needs more than is free does not hold up the
 * others. A place that others leave for one of them is taken for all behind it, whether they are in line or not.
 */
export class WaitingLine {
  readonly #inventory: Supply;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #waiters = new Map<string, Waiter>();
  readonly #groups = new Map<string, Group>();
  readonly #reserved = new ReservedPlaces();
  /** Places that were reserved for instances whose grant may not have been written yet. */
  readonly #granted = new Map<string, ReservedPlace>();
  /** Keys of the instances whose place did not come in time or went to another, and who say still that it comes. */
  readonly #lapsed = new Set<string>();
  /** Keys of the instances that other offers serve than their status may say, or that a place comes for by now. */
  readonly #unsaid = new Set<string>();
  /** Ranks of instances that are expected, by key, and until when, monotonic milliseconds. */
  readonly #expected = new Map<string, string>();
  #expectedUntil = Number.POSITIVE_INFINITY;
  /** Instances that waited when this leader began, by key, until each was looked at; until when, monotonic milliseconds. */
  readonly #unlooked = new Map<string, { rank: string; product: string | undefined }>();
  #unlookedUntil = Number.POSITIVE_INFINITY;
  /** The offers that the groups were made from. */
  #classes: object | undefined;
  /** Where the next look for preemptions begins, if the last had no time for all. */
  #rest: { group: string; rank: string } | undefined;
  #onChange: () => void = () => undefined;

  constructor(inventory: Supply, clock: Pick<Clock, 'monotonic'>) {
    this.#inventory = inventory;
    this.#clock = clock;
  }

  /** Calls the listener when an instance leaves the line or reserves a place: another may have a turn now. */
  onChange(listener: () => void): () => void {
    this.#onChange = listener;
    return () => (this.#onChange = () => undefined);
  }

  add(key: string, instance: GpuInstance, request: PlaceRequest): void {
    this.#take(key);
    this.#refresh();
    const group = this.#groupFor(request);
    const waiter = { key, instance, request, rank: rankOf(instance), group, mayFail: mayFail(instance) };
    const { waiters } = waiter.group;
    waiters.splice(position(waiters, waiter.rank), 0, waiter);
    this.#waiters.set(key, waiter);
    const place = this.#reserved.get(key);
    if (place !== undefined) place.request = request;
    if (place !== undefined && place.rank !== waiter.rank) this.#reserved.set({ ...place, rank: waiter.rank });
    // Nobody ends for it, whatever its status says.
    if (request.type !== 'OnDemand') this.#looked(key);
  }

  remove(key: string): void {
    this.#granted.delete(key);
    const wasExpected = this.#expected.delete(key);
    if (!wasExpected && !this.#waiters.has(key) && this.#reserved.get(key) === undefined) return;
    this.#take(key);
    this.#reserved.delete(key);
    this.#onChange();
  }

  /**
   * The instance got a place on a node. If it had reserved another, whoever loses theirs to it gets the one that it
   * leaves: others ended for that place, and would take it back and end again.
   */
  granted(key: string, node: string): void {
    const left = this.#reserved.get(key);
    this.#expected.delete(key);
    this.#take(key);
    this.#reserved.delete(key);
    if (left === undefined) this.#granted.delete(key);
    else this.#granted.set(key, left);
    if (left !== undefined && left.node !== node) this.#passOn(left, node);
    this.#onChange();
  }

  /** What was granted to an instance was not written: the place that others left for it stays its own for the next try. */
  notGranted(key: string): void {
    const left = this.#granted.get(key);
    this.#granted.delete(key);
    if (left === undefined || !this.#isComing(left)) return;
    this.#reserved.set({ ...left, victims: new Set(), until: this.#clock.monotonic() + LEAVING_MS });
    this.#onChange();
  }

  /** The instance holds up no other until it is added again, but keeps the place that is reserved for it. */
  pause(key: string): void {
    if (!this.#waiters.has(key)) return;
    this.#take(key);
    this.#onChange();
  }

  /** The same, and the place is reserved that it would get, unless one is. */
  hold(key: string, place: Omit<Preemption, 'victims'>): void {
    if (this.#reserved.get(key) === undefined) this.#reserve(key, { ...place, victims: [] });
    this.pause(key);
  }

  /**
   * An instance had a place reserved when this leader began. For a minute nobody behind it has a turn before it had its
   * own, also if its runs fail.
   */
  expect(key: string, instance: GpuInstance): void {
    this.#expected.set(key, rankOf(instance));
    this.#expectedUntil = this.#clock.monotonic() + LEAVING_MS;
  }

  /** An instance waited when this leader began, whose first looks end in any order: that of a disk takes longer. */
  recall(key: string, instance: GpuInstance): void {
    const product = rentedOf(instance)?.gpus?.product ?? instance.spec.gpu?.product;
    this.#unlooked.set(key, { rank: rankOf(instance), product });
    this.#unlookedUntil = this.#clock.monotonic() + FIRST_LOOKS_MS;
  }

  /** A look at an instance has ended, in whatever way. */
  lookedAt(key: string): void {
    if (this.#unlooked.delete(key)) this.#onChange();
  }

  /** Whether GPUs that are free for an instance may be for one before it that the leader has not looked at yet. */
  isEarly(key: string, instance: GpuInstance, { product }: Pick<Place['offerClass'], 'product'>): boolean {
    this.#refresh();
    if (this.#unlooked.size === 0 || this.#reserved.get(key) !== undefined) return false;
    const own = rankOf(instance);
    for (const [other, unlooked] of this.#unlooked)
      if (other !== key && unlooked.rank < own && (unlooked.product ?? product) === product) return true;
    return false;
  }

  /** The place that is reserved for an instance. */
  reserved(key: string): Reserved | undefined {
    const place = this.#reserved.get(key);
    return place && reservedOf(place);
  }

  /** The place that is reserved for an instance, with its price. */
  placeFor(key: string): Pick<Place, 'node' | 'offerClass'> | undefined {
    return this.#reserved.get(key);
  }

  /** The places that are reserved for the instances of a namespace, without that of the instance of this key. */
  placesIn(namespace: string, except?: string): Pick<ReservedPlace, 'key' | 'offerClass' | 'takes' | 'request'>[] {
    return this.#reserved.in(namespace).filter(({ key }) => key !== except);
  }

  /** The others of its tenant that the same offers serve, and for whom no place is reserved. */
  peersOf(key: string): readonly Pick<Waiter, 'key' | 'instance' | 'request'>[] {
    const { group, instance } = this.#waiters.get(key) ?? {};
    const isPeer = (other: Waiter): boolean =>
      other.key !== key &&
      other.instance.metadata.namespace === instance?.metadata.namespace &&
      this.#reserved.get(other.key) === undefined;
    return group?.waiters.filter(isPeer) ?? [];
  }

  /** The instances whose disks no node of this name could mount when they were looked at. */
  tiedElsewhere(node: string): string[] {
    return [...this.#waiters.values()].filter(({ request }) => request.only?.has(node) === false).map(({ key }) => key);
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** The place that an instance of the line would get now. */
  grant(key: string, request: PlaceRequest): Grant {
    this.#refresh();
    return this.#inventory.grant(request, this.#reserved.ahead(this.#rankOf(key)));
  }

  /**
   * The first instance in line before this one that a free place would serve; undefined when it is this one's turn. One
   * that no offer serves takes nothing from anybody, and its status is to say why: nobody wakes it for the places of others.
   */
  before(key: string, instance: GpuInstance): string | undefined {
    this.#refresh();
    let limit = this.#waiters.get(key)?.group.isServed === false ? '' : rankOf(instance);
    let first: string | undefined;
    for (const [expected, rank] of this.#expected) {
      if (rank < limit && expected !== key) [limit, first] = [rank, expected];
    }
    for (const group of this.#groups.values()) {
      for (const waiter of group.waiters) {
        if (waiter.rank >= limit) break;
        if (waiter.key === key || !this.#isFree(waiter)) continue;
        [limit, first] = [waiter.rank, waiter.key];
      }
    }
    if (first === undefined) this.#looked(key);
    return first;
  }

  /** Whether a place is free for an instance of the line, or becomes free, or others would make one. */
  hasPlaceFor(key: string): boolean {
    this.#refresh();
    const waiter = this.#waiters.get(key);
    if (waiter === undefined) return false;
    return this.#isFree(waiter) || (waiter.request.type === 'OnDemand' && this.#find(waiter, true) !== undefined);
  }

  /** The first instances that free places would serve, in order; no more of them than there are places. */
  ready(): string[] {
    this.#refresh();
    const found: Waiter[] = [];
    for (const group of this.#groups.values()) {
      let places = this.#placesFor(group);
      for (const waiter of group.waiters) {
        if (places === 0) break;
        if (!this.#isFree(waiter)) continue;
        found.push(waiter);
        places -= 1;
      }
    }
    return this.#inOrder(found);
  }

  /**
   * What makes room for an on-demand instance; undefined when nothing does. Reserves that place for the instance. Once
   * some were told to go for the place that it has reserved, it stays with that one: they would go for nothing otherwise.
   */
  preempt(key: string, request: PlaceRequest): Preemption | undefined {
    this.#refresh();
    const own = this.#reserved.get(key);
    const kept = own && this.#on(own.node, own);
    const isComing = kept?.victims.length === 0;
    const isBegun = own?.isTold === true && kept !== undefined;
    const found = isComing || isBegun ? kept : this.#find({ key, rank: this.#rankOf(key), request });
    if (!isComing) this.#reserve(key, found);
    // Not for the same place again: a look that follows may ask again, and would never end.
    if (found?.place.node !== own?.node) this.#onChange();
    return found;
  }

  /**
   * A place that becomes free for an instance for which nobody may end: the one that is reserved for it, or another that
   * nobody before it waits for, which is reserved then. A place that serves no more, or for which somebody more had to go,
   * is given up.
   */
  coming(key: string, request: PlaceRequest): Preemption | undefined {
    this.#refresh();
    const own = this.#reserved.get(key);
    const kept = own && this.#on(own.node, own);
    if (kept?.victims.length === 0) return kept;
    const found = this.#find({ key, rank: this.#rankOf(key), request });
    const coming = found?.victims.length === 0 ? found : undefined;
    this.#reserve(key, coming);
    if (own !== undefined && coming?.place.node !== own.node) this.#onChange();
    return coming;
  }

  /** Some are told now to go for the place that an instance has reserved. */
  telling(key: string): void {
    const own = this.#reserved.get(key);
    if (own !== undefined) own.isTold = true;
  }

  /**
   * The instances whose status says what is no longer so: their reserved place did not come in time or went to another, a
   * place comes for them that others gave up, or other offers serve them, as after a change of price. Each is told once.
   */
  outdated(): string[] {
    if (this.#refresh()) this.#onChange();
    const lapsed = [...this.#lapsed].filter((key) => this.#reserved.get(key) === undefined);
    const keys = [...new Set([...lapsed, ...this.#unsaid])].filter((key) => this.#waiters.has(key));
    this.#lapsed.clear();
    this.#unsaid.clear();
    return keys;
  }

  /** The first on-demand instances that more preemptions would make room for, in order. {@link hasMore} may follow. */
  preempting(): string[] {
    if (this.#refresh()) this.#onChange();
    const end = this.#clock.monotonic() + LOOK_MS;
    const from = this.#rest;
    this.#rest = undefined;
    const found: Waiter[] = [];
    let looks = 0;
    for (const group of this.#groupsFrom(from?.group)) {
      const disks = new FittingSizes();
      let count = 0;
      const first = group.key === from?.group ? position(group.waiters, from.rank) : 0;
      for (const waiter of group.waiters.slice(first)) {
        if (count === WAKE_LIMIT) break;
        // One at least, or a line whose looks are slow would stand.
        if (looks > 0 && this.#clock.monotonic() >= end) {
          this.#rest = { group: group.key, rank: waiter.rank };
          return this.#inOrder(found);
        }
        looks += 1;
        if (this.#isFree(waiter) || this.#isComing(this.#reserved.get(waiter.key))) continue;
        const { diskGb } = waiter.request;
        if (disks.fits(diskGb) === false) {
          this.#looked(waiter.key);
          continue;
        }
        const preemption = this.#find(waiter, true);
        disks.note(diskGb, preemption !== undefined);
        if (preemption === undefined || preemption.victims.length === 0) {
          // Another one got the place.
          if (preemption === undefined && this.#reserved.get(waiter.key) !== undefined) this.#lapsed.add(waiter.key);
          this.#reserveUnasked(waiter.key, preemption);
          this.#looked(waiter.key);
        }
        if (preemption === undefined) continue;
        count += 1;
        if (preemption.victims.length > 0) found.push(waiter);
      }
    }
    return this.#inOrder(found);
  }

  /** Whether the last look for preemptions had no time for all. */
  get hasMore(): boolean {
    return this.#rest !== undefined;
  }

  /** When a place or an instance that is waited for is to be looked at again, monotonic milliseconds; Infinity for never. */
  get staleAt(): number {
    return Math.min(
      this.#reserved.staleAt,
      this.#expected.size === 0 ? Number.POSITIVE_INFINITY : this.#expectedUntil,
      this.#unlooked.size === 0 ? Number.POSITIVE_INFINITY : this.#unlookedUntil,
    );
  }

  /** The instances that may fail for want of a place: they do as soon as nothing is about to become free. */
  failFast(): string[] {
    return [...this.#waiters.values()].filter(({ mayFail }) => mayFail).map(({ key }) => key);
  }

  /** Groups anew what other offers serve now. Returns whether a place or an instance is no longer waited for. */
  #refresh(): boolean {
    const { classes } = this.#inventory;
    if (classes !== this.#classes) {
      this.#classes = classes;
      this.#groups.clear();
      for (const waiter of this.#waiters.values()) {
        const { key } = waiter.group;
        waiter.group = this.#groupFor(waiter.request);
        waiter.group.waiters.push(waiter);
        if (waiter.group.key !== key) this.#unsaid.add(waiter.key);
      }
      for (const { waiters } of this.#groups.values()) waiters.sort((a, b) => compareText(a.rank, b.rank));
    }
    const now = this.#clock.monotonic();
    const lapsed = this.#reserved.expire(now);
    for (const key of lapsed) this.#lapsed.add(key);
    const isOver = this.#expected.size > 0 && now >= this.#expectedUntil;
    if (isOver) this.#expected.clear();
    const isLate = this.#unlooked.size > 0 && now >= this.#unlookedUntil;
    if (isLate) this.#unlooked.clear();
    return lapsed.length > 0 || isOver || isLate;
  }

  /** The groups that may preempt, in an order of their own, from one on. */
  #groupsFrom(key = ''): Group[] {
    const found = [...this.#groups.values()].filter((group) => group.key >= key);
    const groups = found.filter(({ waiters: [first] }) => first?.request.type === 'OnDemand');
    return groups.toSorted((a, b) => compareText(a.key, b.key));
  }

  #take(key: string): void {
    const waiter = this.#waiters.get(key);
    if (waiter === undefined) return;
    this.#waiters.delete(key);
    const { waiters, key: groupKey } = waiter.group;
    waiters.splice(position(waiters, waiter.rank), 1);
    if (waiters.length === 0) this.#groups.delete(groupKey);
  }

  #groupFor(request: PlaceRequest): Group {
    const { type, only, isolation, persistent } = request;
    const ids = this.#inventory.offerIdsFor(request);
    // Its status says what these cost.
    const dear = ids.length === 0 ? this.#inventory.cheapest({ ...request, maxPrice: undefined }) : undefined;
    const key = JSON.stringify([type, ids, dear?.prices, only && [...only], isolation, persistent]);
    let group = this.#groups.get(key);
    if (group === undefined) {
      const known = { version: Number.NaN, disks: new FittingSizes(), state: '', beside: new Map() };
      group = { key, waiters: [], isServed: ids.length > 0, known };
      this.#groups.set(key, group);
    }
    return group;
  }

  /** What is found for an instance that was expected is known now: those behind it may have a turn. */
  #looked(key: string): void {
    if (this.#expected.delete(key)) this.#onChange();
  }

  #rankOf(key: string): string {
    return this.#waiters.get(key)?.rank ?? LAST;
  }

  /**
   * What makes room for an instance. A place that is coming and that nobody waits for comes first: one that is taken from
   * somebody behind leaves the other to whoever is quick.
   */
  #find({ key, rank, request }: Asker, isAnyGood = false): Preemption | undefined {
    if (this.#reserved.hasBehind(rank)) {
      const unclaimed = this.#inventory.preempt(request, { reservedOn: this.#reserved.besides(key), isAnyGood });
      if (unclaimed?.victims.length === 0) return unclaimed;
    }
    return this.#inventory.preempt(request, { reservedOn: this.#reserved.ahead(rank), isAnyGood });
  }

  /** What makes room for an instance on one node; undefined when nothing does. A place may be free there already. */
  #on(node: string, { rank, request }: Asker): Preemption | undefined {
    if (request.only?.has(node) === false) return undefined;
    const reservedOn = this.#reserved.ahead(rank);
    return this.#inventory.preempt({ ...request, only: new Set([node]) }, { reservedOn, orFree: true });
  }

  /**
   * Gives what is left on a node to those who lost their place on another, in order, those whose run failed too. What is
   * left may be free by now, or its last instances are still to be told.
   */
  #passOn({ node: left, isTold }: ReservedPlace, taken: string): void {
    for (const loser of this.#reserved.on(taken)) {
      if (this.#isComing(loser)) continue;
      const found = this.#on(left, loser);
      if (found !== undefined) this.#reserveUnasked(loser.key, found, isTold);
    }
  }

  /** Whether a reserved place still becomes free, or is: another instance may have come first. */
  #isComing(place: ReservedPlace | undefined): boolean {
    return place !== undefined && this.#on(place.node, place)?.victims.length === 0;
  }

  /** Reserves what no look of the instance asked for. Its status is to say so: a leader that follows knows only that. */
  #reserveUnasked(key: string, preemption: Preemption | undefined, isTold = false): void {
    const own = this.#reserved.get(key);
    this.#reserve(key, preemption, isTold);
    if (preemption !== undefined && preemption.place.node !== own?.node) this.#unsaid.add(key);
  }

  #reserve(key: string, preemption: Preemption | undefined, isTold = false): void {
    const own = this.#reserved.get(key);
    const { rank, request } = this.#waiters.get(key) ?? own ?? {};
    if (preemption === undefined || rank === undefined || request === undefined) return this.#reserved.delete(key);
    const { place, takes, victims } = preemption;
    this.#expected.delete(key);
    this.#reserved.set({
      key,
      rank,
      request,
      node: place.node,
      offerClass: place.offerClass,
      takes,
      victims: new Set(victims.map((victim) => victim.key)),
      isTold: isTold || (own?.isTold === true && own.node === place.node),
      until: this.#clock.monotonic() + LEAVING_MS,
    });
  }

  #placesFor({ waiters: [first] }: Group): number {
    return first === undefined ? 0 : Math.min(WAKE_LIMIT, this.#inventory.placesFor(first.request));
  }

  #isFree({ group: { known }, request, rank }: Waiter): boolean {
    const { version } = this.#inventory;
    if (known.version !== version) {
      known.version = version;
      known.disks = new FittingSizes();
    }
    if (!this.#fits(known.disks, request)) return false;
    const count = this.#reserved.countAhead(rank);
    if (count === 0) return true;
    const state = `${version}/${this.#reserved.version}`;
    if (known.state !== state) {
      known.state = state;
      known.beside.clear();
    }
    const disks = known.beside.get(count) ?? new FittingSizes();
    known.beside.set(count, disks);
    return this.#fits(disks, request, this.#reserved.ahead(rank));
  }

  #fits(disks: FittingSizes, request: PlaceRequest, reservedOn?: ReservedOn): boolean {
    const anyOffer = { ...request, offerDiskSpace: undefined };
    const fits = disks.fits(request.diskGb) ?? this.#inventory.hasPlace(anyOffer, reservedOn);
    disks.note(request.diskGb, fits);
    return fits;
  }

  #inOrder(found: readonly Waiter[]): string[] {
    return found.toSorted((a, b) => compareText(a.rank, b.rank)).map(({ key }) => key);
  }
}
