import { compareRanks, countBefore, isWaiting, rankOf } from '../../../caches/line-order.ts';
import { fits, isAsRented, isWithin } from '../../../inventory/grant.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { Offer } from '../../../inventory/offers.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { priceLimitOf, rentedOf } from '../../../resources/instances/rented.ts';

/** How old the places may be at most, milliseconds. A short line costs little to look at anew, and is younger. */
const MOST_AGE_MS = 1_000;
const AGE_MS_FOR_EACH = 1;

/** Instances that GPUs of the same kinds would serve. */
interface Group {
  kinds: readonly string[];
  /** Their ranks, the first served first. */
  ranks: string[];
}

/** Offers of one kind are of the same GPUs: who takes two of them takes those that another one waits for, too. */
function kindOf({ pool, resourceName, product, memoryMb, gpuShare, simulated }: Offer): string {
  return [pool, resourceName, product, memoryMb, gpuShare, simulated].join('\0');
}

/** The kinds of GPUs that would serve an instance, in order. */
function kindsFor(instance: GpuInstance, offers: readonly Offer[]): string[] {
  const { offerId, gpu, type } = instance.spec;
  const maxPrice = priceLimitOf(instance);
  const rented = rentedOf(instance)?.gpus;
  const isWanted = (offer: Offer): boolean => {
    if (rented !== undefined) return isAsRented(offer, rented);
    return offerId === undefined ? fits(offer, gpu) : offer.id === offerId;
  };
  const serving = offers.filter((offer) => isWanted(offer) && isWithin(offer, { type, maxPrice }));
  return [...new Set(serving.map(kindOf))];
}

function overlap(kinds: ReadonlySet<string>, others: readonly string[]): boolean {
  return others.some((kind) => kinds.has(kind));
}

/** The line of those who wait for a place, as one moment saw it. A tenant may list a thousand of them without a pause. */
export class Line {
  readonly #offers: readonly Offer[];
  readonly #groups = new Map<string, Group>();
  readonly #kinds = new WeakMap<GpuInstance, readonly string[]>();
  readonly #places = new WeakMap<GpuInstance, { place: number | undefined }>();

  constructor(waiting: readonly GpuInstance[], offers: readonly Offer[]) {
    this.#offers = offers;
    for (const instance of waiting.toSorted(compareRanks)) {
      const kinds = kindsFor(instance, offers);
      this.#kinds.set(instance, kinds);
      const group = this.#groups.get(kinds.join('\n')) ?? { kinds, ranks: [] };
      this.#groups.set(kinds.join('\n'), group);
      group.ranks.push(rankOf(instance));
    }
  }

  /**
   * The place of an instance: 1, and one more for each that is served first and waits for GPUs of a kind that would
   * serve this one too. Undefined when no offer would serve it.
   */
  placeOf(instance: GpuInstance): number | undefined {
    const { place } = this.#places.get(instance) ?? { place: this.#findPlace(instance) };
    this.#places.set(instance, { place });
    return place;
  }

  #findPlace(instance: GpuInstance): number | undefined {
    const wanted = new Set(this.#kinds.get(instance) ?? kindsFor(instance, this.#offers));
    if (wanted.size === 0) return undefined;
    const rank = rankOf(instance);
    let place = 1;
    for (const { kinds, ranks } of this.#groups.values()) {
      if (overlap(wanted, kinds)) place += countBefore(ranks.length, (index) => ranks[index], rank);
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
  let staleAt = Number.NEGATIVE_INFINITY;
  return (instance) => {
    if (!isWaiting(instance)) return undefined;
    const now = clock.monotonic();
    if (version !== stores.instances.resourceVersion && now >= staleAt) {
      const waiting = stores.instances.by('waiting', 'true');
      line = new Line(waiting, offers.offers());
      version = stores.instances.resourceVersion;
      staleAt = now + Math.min(MOST_AGE_MS, AGE_MS_FOR_EACH * waiting.length);
    }
    return line.placeOf(instance);
  };
}
