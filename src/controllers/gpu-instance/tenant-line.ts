import { type Amounts, addAmounts } from '../../inventory/amounts.ts';
import { diskRefusal, gpuRefusal } from '../../inventory/ceilings.ts';
import type { PlaceRequest } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { rankOf } from '../../caches/line-order.ts';
import { refOf } from '../../kube/types.ts';
import { compareText } from '../../lib/compare.ts';
import { sameJson } from '../../lib/json.ts';
import { Lru } from '../../lib/lru.ts';
import { comingGb } from '../../inventory/tenant-disks.ts';
import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import type { Claim, GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { meterBegan } from '../../resources/instances/meter.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { ControllerStores } from '../stores.ts';
import type { LimitOf } from '../tenants/tenant-ceilings.ts';
import { amountsOf, disksOf, gpusOf } from './coming-places.ts';
import { quotaRefusal } from './decide/refusals/quota.ts';
import type { WaitingLine } from './waiting-line.ts';

interface Deps {
  inventory: Pick<Inventory, 'heldBy' | 'onRelease' | 'assumedIn' | 'classes' | 'candidates'>;
  line: Pick<WaitingLine, 'add' | 'hasPlaceFor' | 'placesIn'>;
  stores: Pick<ControllerStores, 'tenantLimits' | 'namespaces' | 'instances' | 'quotas' | 'disks'>;
  ceilingsOf: LimitOf;
}

/** Room for one after another, as far as there is room for all of them together. */
export interface Room<T> {
  has: (wanted: T) => boolean;
  take: (wanted: T) => void;
}

/** What room budgets have. */
export interface BudgetRoom extends Room<Claim> {
  /** What leaves a claim no room, as its refusal said it; undefined when there is room for it alone. */
  stopOf: (claim: Claim) => string | undefined;
}

/** An offer that would serve an instance, and that its tenant has no room for in a budget, a quota or its disks. */
export type OverMeans =
  /** What a start there would claim, and what of the budgets refuses it. */
  | { offer: number; claim: Claim; stop: string }
  /** GB of the disk that a start there would make. */
  | { offer: number; diskGb: number }
  /** What a start there would take of the quotas. */
  | { offer: number; amounts: Amounts };

/** An instance as the waiting line takes it, and what it waits for. With nothing, only a change of the ceilings helps. */
interface TenantWaiter {
  /** With the time since when it waits. */
  instance: GpuInstance;
  request: PlaceRequest;
  /** The GPUs that the ceilings have no room for. Room for any of these will do. */
  gpus?: readonly GpuShare[];
  /** What budgets, quotas and the ceiling over disks have no room for. Room for any of these will do. */
  over?: readonly OverMeans[];
  /** The GPUs of one more start, of a tenant that has held too much without a bill. */
  unbilled?: GpuShare;
}

/** `served`: the offers that serve it, with their prices. */
type Known = TenantWaiter & { rank: string; served: string };

/** Room for the wishes of those that wait. A highest price makes each of them another. */
const wishes = (): Lru<string, string> => new Lru(4096);

/** What an instance asks for in the line while it may have nothing of what is refused, but these. */
function asking({ request, gpus = [], over = [] }: TenantWaiter, but: readonly (GpuShare | OverMeans)[]): PlaceRequest {
  const without = gpus.filter((share) => !but.includes(share));
  const withoutOffers = over.filter((one) => !but.includes(one));
  return {
    ...request,
    ...(without.length > 0 && { without }),
    ...(withoutOffers.length > 0 && { withoutOffers: withoutOffers.map(({ offer }) => offer) }),
  };
}

/** The same is not asked for in vain twice. */
function roomOf<T>(refuses: (taken: readonly T[], wanted: T) => boolean): Room<T> {
  const taken: T[] = [];
  const refused = new Set<string>();
  return {
    has(wanted) {
      const text = JSON.stringify(wanted);
      if (refused.has(text)) return false;
      if (!refuses(taken, wanted)) return true;
      refused.add(text);
      return false;
    },
    take: (wanted) => void taken.push(wanted),
  };
}

/**
 * The instances that a ceiling, a budget or a quota of their tenant refused. They hold up nobody in the waiting line.
 * Those that their tenant has room for again are let go: they stand in the waiting line by the time that they have
 * waited, before anybody behind them has a turn, until they had one turn each. Those for whom there is no place take no
 * room from others of the tenant. A claim that the tenant gives back lets them go, a quota that changes, each look at
 * its budgets, and each claim of a younger one of the tenant. A change of its ceilings wakes them all, and so does one
 * of the offers that serve them: another offer, or another price, may be one that its tenant has room for. Other
 * tenants are never looked at.
 */
export class TenantLine {
  readonly #deps: Deps;
  /** By namespace, then by key. */
  readonly #waiters = new Map<string, Map<string, Known>>();
  /** Keys of those that were let go, until it is known what became of them. */
  readonly #going = new Set<string>();
  /** The offers that the waiters were looked at with last. */
  #classes: object | undefined;
  /** By what is asked for: the offers that serve it, as far as somebody asked. */
  #served: { classes: object | undefined; byWish: Lru<string, string> } = { classes: undefined, byWish: wishes() };
  #wake: AddKey | undefined;

  readonly source: Source;

  constructor(deps: Deps) {
    const { inventory, stores } = deps;
    this.#deps = deps;
    this.source = {
      synced: stores.tenantLimits.synced,
      start: (add) => {
        this.#wake = add;
        const stops = [
          inventory.onRelease((namespace) => this.released(namespace)),
          // A disk that is gone makes room for others.
          stores.disks.onChange(({ before, after }) => {
            if (after === undefined) this.#serveDisks(before?.metadata.namespace ?? '');
          }),
          // So does a place without one that lasts, and a smaller one.
          stores.instances.onChange(({ before, after }) => {
            const [had = 0, has = 0] = [before && comingGb(before), after && comingGb(after)];
            if (has < had) this.#serveDisks(before?.metadata.namespace ?? '');
          }),
          // A start that is billed makes room for others that are not yet.
          stores.instances.onChange(({ before, after }) => {
            if (before === undefined || meterBegan(before.status) !== undefined) return;
            if (meterBegan(after?.status) !== undefined) this.released(after?.metadata.namespace ?? '');
          }),
          stores.quotas.onChange(({ before, after }) => this.#serveQuotas((after ?? before)?.metadata.namespace ?? '')),
          stores.tenantLimits.onChange(({ before, after }) => {
            const { namespace = '' } = (after ?? before)?.metadata ?? {};
            // The status says what is spent, and changes with each per cent.
            if (!sameJson(before?.spec, after?.spec)) this.wakeAll(namespace);
          }),
          // The ceilings of a namespace are not known before its labels.
          stores.namespaces.onChange(({ key, before }) => {
            if (before === undefined) this.wakeAll(key);
          }),
        ];
        return () => {
          this.#wake = undefined;
          for (const stop of stops) stop();
        };
      },
    };
  }

  add(key: string, waiter: TenantWaiter): void {
    const { namespace = '' } = waiter.instance.metadata;
    const waiters = this.#waiters.get(namespace) ?? new Map<string, Known>();
    const known = { ...waiter, rank: rankOf(waiter.instance), served: this.#servedBy(waiter.request) };
    this.#waiters.set(namespace, waiters.set(key, known));
    this.#came(key, namespace);
  }

  /** Whether nobody waits for a tenant. */
  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** The instances that other offers serve than when they were refused, or at another price. Each is told once. */
  outdated(): string[] {
    const { classes } = this.#deps.inventory;
    if (this.#wake === undefined || classes === this.#classes) return [];
    this.#classes = classes;
    const found: string[] = [];
    for (const [key, waiter] of [...this.#waiters.values()].flatMap((waiters) => [...waiters])) {
      const served = this.#servedBy(waiter.request);
      if (served !== waiter.served) found.push(key);
      waiter.served = served;
    }
    return found;
  }

  #servedBy({ offerId, gpu, rented, type, maxPrice }: PlaceRequest): string {
    const { inventory } = this.#deps;
    if (this.#served.classes !== inventory.classes) this.#served = { classes: inventory.classes, byWish: wishes() };
    const { byWish } = this.#served;
    const wish = { offerId, gpu, rented, type, maxPrice };
    const text = JSON.stringify(wish);
    const known = byWish.get(text);
    if (known !== undefined) return known;
    const served = JSON.stringify(inventory.candidates(wish).map(({ id, prices }) => [id, prices]));
    byWish.set(text, served);
    return served;
  }

  /** The same, of an instance that had no look of its own. Its look follows. */
  addUnseen(key: string, waiter: TenantWaiter): void {
    this.add(key, waiter);
    this.#wake?.(key);
  }

  /** It waits for its tenant no more. */
  remove(key: string): void {
    this.looked(key);
    this.#came(key, refOf(key).namespace ?? '');
  }

  /** It has its turn now, and what becomes of it is still to come. */
  looked(key: string): void {
    const { namespace = '' } = refOf(key);
    const waiters = this.#waiters.get(namespace);
    if (waiters?.delete(key) && waiters.size === 0) this.#waiters.delete(namespace);
  }

  /** What was taken for one that was let go is its own by now, or there for those who were not let go beside it. */
  #came(key: string, namespace: string): void {
    if (this.#going.delete(key)) this.serve(namespace);
  }

  /**
   * Lets the instances of a tenant go that its ceilings over GPUs and disks, and its quotas, have room for now.
   * @param before only those that have waited longer than this one
   */
  serve(namespace: string, before?: GpuInstance): void {
    const waiters = this.#inOrder(namespace, before);
    if (waiters.length === 0) return;
    const room = this.#gpuRoom(namespace);
    for (const [key, waiter] of waiters) {
      const found = waiter.gpus?.filter(room.has) ?? [];
      // What is refused still must not hold up others that want it.
      if (this.#letGo(key, waiter, found)) found.slice(0, 1).forEach(room.take);
    }
    this.#serveDisks(namespace, before);
    this.#serveQuotas(namespace, before);
  }

  /** Each whose disk has room by itself: the first of these may still be refused its GPUs. */
  #serveDisks(namespace: string, before?: GpuInstance): void {
    const waiters = this.#inOrder(namespace, before).filter(([, { over }]) => over?.some((one) => 'diskGb' in one));
    if (waiters.length === 0) return;
    const [limit, use] = [this.#deps.ceilingsOf(namespace), disksOf(this.#deps, namespace)];
    const fits = (gb: number): boolean => diskRefusal(limit, use, { namespace, gb }) === undefined;
    for (const [key, waiter] of waiters) {
      this.#letGo(key, waiter, waiter.over?.filter((one) => 'diskGb' in one && fits(one.diskGb)) ?? []);
    }
  }

  /** Whether an instance of a tenant waits for a budget. */
  hasBudgeted(namespace: string): boolean {
    return [...(this.#waiters.get(namespace)?.values() ?? [])].some(({ over }) => over?.some((one) => 'claim' in one));
  }

  /**
   * Lets the instances of a tenant go that its budgets have room for now, and wakes those that something else of its
   * budgets stops than they say.
   * @param before only those that have waited longer than this one
   */
  serveBudget(namespace: string, { has, take, stopOf }: BudgetRoom, before?: GpuInstance): void {
    for (const [key, waiter] of this.#inOrder(namespace, before)) {
      const over = waiter.over?.filter((one) => 'claim' in one) ?? [];
      const found = over.filter(({ claim }) => has(claim));
      const [first] = found;
      if (first !== undefined) {
        if (this.#letGo(key, waiter, found)) take(first.claim);
      } else if (over.some(({ claim, stop }) => (stopOf(claim) ?? stop) !== stop)) this.#wake?.(key);
    }
  }

  /** Wakes every instance of a tenant that a ceiling, a budget or a quota refused. */
  wakeAll(namespace: string): void {
    this.serve(namespace);
    for (const [key] of this.#inOrder(namespace)) this.#wake?.(key);
  }

  #serveQuotas(namespace: string, before?: GpuInstance): void {
    const waiters = this.#inOrder(namespace, before).filter(([, { over }]) => over?.some((one) => 'amounts' in one));
    if (waiters.length === 0) return;
    const quotas = this.#deps.stores.quotas.by('namespace', namespace);
    const coming = amountsOf(this.#deps, namespace);
    const room = roomOf<Amounts>(
      (taken, wanted) => quotaRefusal(quotas, wanted, taken.reduce(addAmounts, coming)) !== undefined,
    );
    for (const [key, waiter] of waiters) {
      const over = waiter.over?.filter((one) => 'amounts' in one) ?? [];
      const found = over.filter(({ amounts }) => room.has(amounts));
      if (this.#letGo(key, waiter, found)) found.slice(0, 1).forEach(({ amounts }) => room.take(amounts));
    }
  }

  /** A claim or a reserved place was given back, or is billed from now on. */
  released(namespace: string): void {
    this.serve(namespace);
    // Whether one may start says its own look: until then it holds up nobody.
    const room = this.#gpuRoom(namespace);
    for (const [key, { unbilled }] of this.#inOrder(namespace)) {
      if (unbilled === undefined || !room.has(unbilled)) continue;
      room.take(unbilled);
      this.#wake?.(key);
    }
  }

  #gpuRoom(namespace: string): Room<GpuShare> {
    const limit = this.#deps.ceilingsOf(namespace);
    const held = gpusOf(this.#deps, namespace);
    return roomOf<GpuShare>((taken, wanted) => gpuRefusal(limit, [...held, ...taken], wanted) !== undefined);
  }

  /**
   * @param found of what was refused, each that there is room for now; with none, it stays
   * @returns whether there is a place for it
   */
  #letGo(key: string, waiter: TenantWaiter, found: readonly (GpuShare | OverMeans)[]): boolean {
    const { line } = this.#deps;
    if (found.length === 0) return false;
    line.add(key, waiter.instance, asking(waiter, found));
    this.#going.add(key);
    this.#wake?.(key);
    return line.hasPlaceFor(key);
  }

  /** Who waits, who has waited longest first; nobody while this replica does not lead. */
  #inOrder(namespace: string, before?: GpuInstance): [string, Known][] {
    const waiters = this.#wake === undefined ? [] : [...(this.#waiters.get(namespace) ?? [])];
    const limit = before && rankOf(before);
    const found = limit === undefined ? waiters : waiters.filter(([, { rank }]) => rank < limit);
    return found.toSorted(([, a], [, b]) => compareText(a.rank, b.rank));
  }
}
