import { compareRanks, isWaiting, rankOf } from '../../caches/line-order.ts';
import { fits } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { Offer } from '../../inventory/offers.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';

/** How old the places may be, milliseconds. */
const AGE_MS = 1_000;

/** Instances that the same offers would serve. */
interface Group {
  offers: readonly number[];
  /** Their ranks, the first served first. */
  ranks: string[];
}

function offersFor({ spec }: GpuInstance, offers: readonly Offer[]): number[] {
  if (spec.offerId !== undefined) return [spec.offerId];
  return offers.filter((offer) => fits(offer, spec.gpu)).map(({ id }) => id);
}

/** Index of the first of these ranks, in order, that is not lower. */
function firstNotBelow(ranks: readonly string[], rank: string): number {
  let [low, high] = [0, ranks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranks[middle] ?? '') < rank) low = middle + 1;
    else high = middle;
  }
  return low;
}

function overlap(ids: ReadonlySet<number>, others: readonly number[]): boolean {
  return others.some((id) => ids.has(id));
}

/** The line of those who wait for a place, as one moment saw it. */
export class Line {
  readonly #offers: readonly Offer[];
  readonly #groups = new Map<string, Group>();

  constructor(waiting: readonly GpuInstance[], offers: readonly Offer[]) {
    this.#offers = offers;
    for (const instance of waiting.toSorted(compareRanks)) {
      const ids = offersFor(instance, offers);
      const group = this.#groups.get(ids.join()) ?? { offers: ids, ranks: [] };
      this.#groups.set(ids.join(), group);
      group.ranks.push(rankOf(instance));
    }
  }

  /**
   * The place of an instance: 1, and one more for each that is served first and that an offer for this one would serve
   * too. Undefined when no offer would serve it.
   */
  placeOf(instance: GpuInstance): number | undefined {
    const ids = new Set(offersFor(instance, this.#offers));
    if (ids.size === 0) return undefined;
    const rank = rankOf(instance);
    let place = 1;
    for (const { offers, ranks } of this.#groups.values()) {
      if (overlap(ids, offers)) place += firstNotBelow(ranks, rank);
    }
    return place;
  }
}

export interface PlacesDeps {
  stores: { instances: ReadStore<GpuInstance> };
  offers: Pick<Inventory, 'offers'>;
  clock: Pick<Clock, 'monotonic'>;
}

/** Says where an instance stands in the line, as the caches of this replica have it; undefined for one not in it. */
export function placesReader({ stores, offers, clock }: PlacesDeps): (instance: GpuInstance) => number | undefined {
  let line = new Line([], []);
  let version = '';
  let madeAt = Number.NEGATIVE_INFINITY;
  return (instance) => {
    if (!isWaiting(instance)) return undefined;
    const now = clock.monotonic();
    if (version !== stores.instances.resourceVersion && now - madeAt >= AGE_MS) {
      line = new Line(stores.instances.by('waiting', 'true'), offers.offers());
      version = stores.instances.resourceVersion;
      madeAt = now;
    }
    return line.placeOf(instance);
  };
}
