import { hasPlace } from '../../../wire/has-place.ts';
import type { FoundOffer } from '../../../wire/records.ts';

/** What a person looks for among the offers. */
export interface Wish {
  gpu: string;
  memoryGb: number;
  isolation: '' | FoundOffer['isolation'];
  price: string;
  isFree: boolean;
  sort: 'price' | 'memory' | 'start' | 'available';
  /** The image that the instance would have; empty: the default one. */
  image: string;
}

export const ANY: Wish = { gpu: '', memoryGb: 0, isolation: '', price: '', isFree: false, sort: 'price', image: '' };

/** The same GPU in any number of them. */
export interface Product {
  key: string;
  /** By number of GPUs, the smallest first. There is one at least. */
  offers: readonly [FoundOffer, ...FoundOffer[]];
}

function matches(offer: FoundOffer, { gpu, memoryGb, isolation, price, isFree }: Wish): boolean {
  if (gpu !== '' && !offer.gpu_name.toLowerCase().includes(gpu.toLowerCase())) return false;
  if (offer.gpu_memory_mb < memoryGb * 1024) return false;
  if (isolation !== '' && offer.isolation !== isolation) return false;
  if (price !== '' && Number(offer.price_per_hour.on_demand) > Number(price)) return false;
  return !isFree || hasPlace(offer);
}

/** For one GPU: what its price, its memory and its start are compared by. */
const SORTS: Readonly<Record<Wish['sort'], (a: FoundOffer, b: FoundOffer) => number>> = {
  price: (a, b) => Number(a.price_per_hour.on_demand) / a.gpu_count - Number(b.price_per_hour.on_demand) / b.gpu_count,
  memory: (a, b) => b.gpu_memory_mb - a.gpu_memory_mb,
  start: (a, b) => (a.expected_start_seconds ?? Infinity) - (b.expected_start_seconds ?? Infinity) || 0,
  available: (a, b) => b.available - a.available,
};

function keyOf({
  gpu_name: name,
  gpu_memory_mb: memory,
  isolation,
  mig_profile,
  pool,
  simulated,
  price_per_hour,
}: FoundOffer) {
  return JSON.stringify([name, memory, isolation, mig_profile, pool, simulated, price_per_hour.currency]);
}

/** The offers that fit as products, in the order that is wished for; the simulated ones last. */
export function productsOf(offers: readonly FoundOffer[], wish: Wish): Product[] {
  const groups = Map.groupBy(
    offers.filter((offer) => matches(offer, wish)),
    keyOf,
  );
  return [...groups]
    .flatMap(([key, group]): Product[] => {
      const [first, ...more] = group.toSorted((a, b) => a.gpu_count - b.gpu_count);
      return first === undefined ? [] : [{ key, offers: [first, ...more] }];
    })
    .toSorted(
      ({ offers: [a] }, { offers: [b] }) => Number(a.simulated) - Number(b.simulated) || SORTS[wish.sort](a, b),
    );
}
