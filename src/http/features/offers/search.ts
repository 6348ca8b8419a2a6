import type { Offer } from '../../../inventory/offers.ts';
import { withoutNulls } from '../../../wire/without-nulls.ts';
import { toOfferRecord } from './record.ts';
import type { FoundOffer, OfferSearch } from './schema.ts';
import type { StartTimes } from './start-times.ts';

type Wanted = ReturnType<typeof withoutNulls<OfferSearch>>;

function priceOf({ prices }: Offer, { type }: Wanted): number {
  return Number(type === 1 ? prices.interruptible : prices.onDemand);
}

/** Whether what was asked for is absent or the same. */
function same<T>(wanted: T | undefined, has: T | undefined): boolean {
  return wanted === undefined || wanted === has;
}

function fits(offer: Offer, wanted: Wanted): boolean {
  return (
    same(wanted.gpu_name, offer.product) &&
    same(wanted.gpu_count, offer.gpuCount) &&
    same(wanted.isolation, offer.isolation) &&
    same(wanted.mig_profile, offer.migProfile) &&
    same(wanted.simulated, offer.simulated) &&
    same(wanted.pool, offer.pool) &&
    same(wanted.currency, offer.prices.currency) &&
    priceOf(offer, wanted) <= Number(wanted.max_price_per_hour ?? Infinity) &&
    offer.memoryMb >= (wanted.min_gpu_memory_mb ?? 0) &&
    offer.available >= (wanted.min_available ?? 0) &&
    offer.cpuCores >= (wanted.min_cpu_cores ?? 0) &&
    offer.memoryMbHost >= (wanted.min_memory_mb ?? 0) &&
    offer.diskGbMax >= (wanted.min_disk_gb ?? 0)
  );
}

/** The offers that fit, cheapest first by the price of the type that is asked for, with what they mean for the image. */
export function searchOffers(
  offers: readonly Offer[],
  search: OfferSearch,
  {
    startTimes,
    defaultImage,
    tenant,
  }: { startTimes: Pick<StartTimes, 'expectedSeconds'>; defaultImage: string; tenant: string },
): FoundOffer[] {
  const wanted = withoutNulls(search);
  const image = wanted.image === undefined || wanted.image === '' ? defaultImage : wanted.image;
  return offers
    .filter((offer) => fits(offer, wanted))
    .toSorted((left, right) => priceOf(left, wanted) - priceOf(right, wanted) || left.id - right.id)
    .map((offer) => {
      const seconds = startTimes.expectedSeconds(offer, { image, tenant });
      return { ...toOfferRecord(offer, image), ...(seconds !== undefined && { expected_start_seconds: seconds }) };
    });
}
