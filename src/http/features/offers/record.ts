import type { Offer } from '../../../inventory/offers.ts';
import type { OfferRecord } from './schema.ts';

/** An offer as the API shows it. `image_cached` tells whether a node has `image`, the default image. */
export function toOfferRecord(offer: Offer, image: string): OfferRecord {
  return {
    id: offer.id,
    object: 'offer',
    gpu_name: offer.product,
    gpu_count: offer.gpuCount,
    gpu_memory_mb: offer.memoryMb,
    isolation: offer.isolation,
    mig_profile: offer.migProfile ?? null,
    available: offer.available,
    available_by_preemption: offer.availableByPreemption,
    simulated: offer.simulated,
    price_per_hour: {
      on_demand: offer.prices.onDemand,
      interruptible: offer.prices.interruptible,
      currency: offer.prices.currency,
    },
    cpu_cores: offer.cpuCores,
    memory_mb: offer.memoryMbHost,
    disk_gb_max: offer.diskGbMax,
    driver_version: offer.driverVersion || null,
    cuda_version: offer.cudaVersion || null,
    image_cached: offer.imageCached(image),
    pool: offer.pool,
  };
}

/** The order of every list of offers: cheapest first, then by id, which keeps it stable. */
export function byPrice(left: Offer, right: Offer): number {
  return Number(left.prices.onDemand) - Number(right.prices.onDemand) || left.id - right.id;
}
