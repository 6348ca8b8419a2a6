import { compareText } from '../../lib/compare.ts';
import type { Amounts } from '../../inventory/amounts.ts';
import type { PlaceRequest } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { countBefore, rankOf } from '../../caches/line-order.ts';
import { LEAVING_MS, type Preemption } from '../../inventory/preempt.ts';
import { TwoKeyMap } from '../../inventory/two-key-map.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';

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

interface Waiter {
  key: string;
  request: PlaceRequest;
  /** Sorts on-demand before interruptible, then older before younger. */
  rank: string;
  group: Group;
  mayFail: boolean;
  /** Until when the waiter counts on the place that it reserved, milliseconds since the epoch. */
  reservedUntil: number | undefined;
}

/** Waiters whose requests differ at most in what decides nothing (image, nodes to avoid) and in the size of the disk. */
interface Group {
  key: string;
  /** By rank. */
  waiters: Waiter[];
  /** Which disks a free place has room for, at this version of the inventory. */
  disks: FittingSizes;
  version: number;
}

/** Waiters that one look wakes. What they do changes the inventory, and the next look wakes others. */
const WAKE_LIMIT = 64;

function groupKeyOf({ offerId, gpu, type, offerDiskSpace, only, without, isolation }: PlaceRequest): string {
  return JSON.stringify([offerId, gpu, type, offerDiskSpace, only && [...only], without, isolation]);
}

/** Index of the first waiter whose rank is not lower. */
function position(waiters: readonly Waiter[], rank: string): number {
  return countBefore(waiters.length, (index) => waiters[index]?.rank, rank);
}

/** Instances that wait for a place, the oldest first. One that needs more than is free does not hold up the others. */
export class WaitingLine {
  readonly #inventory: Pick<Inventory, 'hasPlace' | 'placesFor' | 'preempt' | 'version'>;
  readonly #waiters = new Map<string, Waiter>();
  readonly #groups = new Map<string, Group>();
  /** What waiters are to get of nodes where instances are leaving: no two wait for the same place. */
  readonly #reserved = new TwoKeyMap<Amounts>();
  #onChange: () => void = () => undefined;

  constructor(inventory: Pick<Inventory, 'hasPlace' | 'placesFor' | 'preempt' | 'version'>) {
    this.#inventory = inventory;
  }

  /** Calls the listener when an instance leaves the line or reserves a place: another may have a turn now. */
  onChange(listener: () => void): () => void {
    this.#onChange = listener;
    return () => (this.#onChange = () => undefined);
  }

  add(key: string, instance: GpuInstance, request: PlaceRequest): void {
    const reservedUntil = this.#waiters.get(key)?.reservedUntil;
    this.#take(key);
    const group = this.#groupOf(groupKeyOf(request));
    const mayFail = instance.spec.onNoCapacity === 'Fail';
    const waiter = { key, request, rank: rankOf(instance), group, mayFail, reservedUntil };
    group.waiters.splice(position(group.waiters, waiter.rank), 0, waiter);
    this.#waiters.set(key, waiter);
  }

  remove(key: string): void {
    if (!this.#waiters.has(key)) return;
    this.#take(key);
    this.#reserved.set(key, undefined, undefined);
    this.#onChange();
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** The first instance in line before this one that a free place would serve; undefined when it is this one's turn. */
  before(key: string, instance: GpuInstance): string | undefined {
    let limit = rankOf(instance);
    let first: string | undefined;
    for (const group of this.#groups.values()) {
      for (const waiter of group.waiters) {
        if (waiter.rank >= limit) break;
        if (waiter.key === key || !this.#isFree(waiter)) continue;
        [limit, first] = [waiter.rank, waiter.key];
      }
    }
    return first;
  }

  /** The first instances that free places would serve, in order; no more of them than there are places. */
  ready(): string[] {
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

  /** What makes room for an on-demand instance; undefined when nothing does. Reserves that place for the instance. */
  preempt(key: string, request: PlaceRequest, now: number): Preemption | undefined {
    const [before] = this.#reserved.nodesOf(key);
    this.#reserved.set(key, undefined, undefined);
    const found = this.#inventory.preempt(request, { reservedOn: (node) => this.#reserved.of(node) });
    const waiter = this.#waiters.get(key);
    if (waiter !== undefined) this.#reserve(waiter, found, now);
    // Not for the same place again: a look that follows may ask again, and would never end.
    if (found !== undefined && found.place.node !== before) this.#onChange();
    return found;
  }

  /** The first on-demand instances that more preemptions would make room for, in order. */
  preempting(now: number): string[] {
    const found: Waiter[] = [];
    for (const group of this.#groups.values()) {
      if (group.waiters[0]?.request.type !== 'OnDemand') continue;
      const disks = new FittingSizes();
      let count = 0;
      for (const waiter of group.waiters) {
        if (count === WAKE_LIMIT) break;
        if (this.#isFree(waiter) || this.#isComing(waiter, now)) continue;
        const { diskGb } = waiter.request;
        if (disks.fits(diskGb) === false) continue;
        const preemption = this.#firstPreemption(waiter);
        disks.note(diskGb, preemption !== undefined);
        this.#reserve(waiter, preemption?.victims.length === 0 ? preemption : undefined, now);
        if (preemption === undefined) continue;
        count += 1;
        if (preemption.victims.length > 0) found.push(waiter);
      }
    }
    return this.#inOrder(found);
  }

  /** When a place that is waited for is to be looked at again, milliseconds since the epoch; Infinity for never. */
  get staleAt(): number {
    const times = [...this.#waiters.values()].map(({ reservedUntil = Number.POSITIVE_INFINITY }) => reservedUntil);
    return times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  }

  /** The instances with onNoCapacity Fail: they fail as soon as nothing is about to become free. */
  failFast(): string[] {
    return [...this.#waiters.values()].filter(({ mayFail }) => mayFail).map(({ key }) => key);
  }

  #take(key: string): void {
    const waiter = this.#waiters.get(key);
    if (waiter === undefined) return;
    this.#waiters.delete(key);
    const { waiters, key: groupKey } = waiter.group;
    waiters.splice(position(waiters, waiter.rank), 1);
    if (waiters.length === 0) this.#groups.delete(groupKey);
  }

  #groupOf(key: string): Group {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { key, waiters: [], disks: new FittingSizes(), version: Number.NaN };
      this.#groups.set(key, group);
    }
    return group;
  }

  /** Whether the place that a waiter reserved still becomes free: another instance may have come first. */
  #isComing({ key, request, reservedUntil = 0 }: Waiter, now: number): boolean {
    const [node] = this.#reserved.nodesOf(key);
    if (node === undefined || reservedUntil <= now) return false;
    const own = this.#reserved.get(key);
    this.#reserved.set(key, undefined, undefined);
    const reservedOn = (name: string): Iterable<Amounts> => this.#reserved.of(name);
    const there = this.#inventory.preempt({ ...request, only: new Set([node]) }, { reservedOn, isAnyGood: true });
    this.#reserved.set(key, node, own);
    return there?.victims.length === 0;
  }

  #firstPreemption(waiter: Waiter): Preemption | undefined {
    this.#reserved.set(waiter.key, undefined, undefined);
    const reservedOn = (node: string): Iterable<Amounts> => this.#reserved.of(node);
    return this.#inventory.preempt(waiter.request, { reservedOn, isAnyGood: true });
  }

  #reserve(waiter: Waiter, preemption: Preemption | undefined, now: number): void {
    waiter.reservedUntil = preemption && now + LEAVING_MS;
    if (preemption !== undefined) this.#reserved.set(waiter.key, preemption.place.node, preemption.takes);
  }

  #placesFor({ waiters: [first] }: Group): number {
    return first === undefined ? 0 : Math.min(WAKE_LIMIT, this.#inventory.placesFor(first.request));
  }

  #isFree({ group, request }: Waiter): boolean {
    const { version } = this.#inventory;
    if (group.version !== version) {
      group.version = version;
      group.disks = new FittingSizes();
    }
    const known = group.disks.fits(request.diskGb);
    if (known !== undefined) return known;
    const isFree = this.#inventory.hasPlace(request);
    group.disks.note(request.diskGb, isFree);
    return isFree;
  }

  #inOrder(found: readonly Waiter[]): string[] {
    return found.toSorted((a, b) => compareText(a.rank, b.rank)).map(({ key }) => key);
  }
}
