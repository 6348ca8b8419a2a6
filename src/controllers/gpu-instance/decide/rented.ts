import { fits, type PlaceRequest, priceFor } from '../../../inventory/grant.ts';
import type { OfferClass } from '../../../inventory/offers.ts';
import type { Claim, GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import { namesPrice, type Rented, rentedOf, type RentedGpus, wishOf } from '../../../resources/instances/rented.ts';
import type { Observed } from './observed.ts';

type Offered = NonNullable<Observed['offered']>;

type Named = 'migProfile' | 'gpuShare';

function gpusOf(place: Omit<RentedGpus, Named> & { [name in Named]?: string | undefined }): RentedGpus {
  const { product, gpuCount, isolation, migProfile, gpuShare, memoryMb, simulated, pool, offerId } = place;
  const profile = migProfile === undefined ? {} : { migProfile };
  // The product of a slice says what part it is.
  const share = gpuShare === undefined || isolation !== 'time_sliced' ? {} : { gpuShare };
  return { product, gpuCount, isolation, ...profile, ...share, memoryMb, simulated, pool, offerId };
}

/** What the owner of an instance of this type sees of a class. */
export function offeredOf(offerClass: OfferClass, type: PlaceRequest['type']): Offered {
  const { id: offerId, pool, prices } = offerClass;
  const gpus = gpusOf({ ...offerClass, pool: pool.name, offerId });
  return { gpus, pricePerHour: priceFor(offerClass, type), currency: prices.currency };
}

/** Whether it matters what the offers show: nothing was seen yet, or the owner has named another price since. */
export function looksAtOffers(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): boolean {
  if (instance.status?.claim !== undefined || isSwitchedOff(instance)) return false;
  const price = rentedOf(instance)?.price;
  return price === undefined || namesPrice(instance, price);
}

/** Whether a claim is what the spec asks for: it may have been edited since, by one who wants something else next time. */
function serves({ offerId, gpu }: GpuInstance['spec'], claim: Claim): boolean {
  return offerId === undefined ? fits(claim, gpu) : claim.offerId === offerId;
}

/** The GPUs of the first claim; before it, those of the offer that the owner named. */
function keptGpus({ spec, status }: Pick<GpuInstance, 'spec' | 'status'>, offered?: Offered): RentedGpus | undefined {
  const claim = status?.claim;
  if (claim !== undefined) return gpusOf(claim);
  return spec.offerId === offered?.gpus.offerId ? offered?.gpus : undefined;
}

function keptPrice(instance: Pick<GpuInstance, 'spec' | 'status'>, offered?: Offered): Rented['price'] {
  const kept = rentedOf(instance)?.price;
  const seen = instance.status?.claim ?? offered;
  const first = kept ?? seen;
  if (first === undefined) return undefined;
  const { pricePerHour, currency } = first;
  const { maxPricePerHour: named } = instance.spec;
  const accepted = namesPrice(instance, kept) ? (seen?.currency ?? currency) : currency;
  return { pricePerHour, currency: accepted, ...(named !== undefined && { named }) };
}

/**
 * What the status keeps of what was rented, and for how much: what was seen first, as long as the spec asks for it. What
 * the spec asked for stays there until another start asks for something else: that one has a new place in line.
 */
export function keptRented(
  instance: Pick<GpuInstance, 'spec' | 'status'>,
  offered?: Offered,
): Pick<GpuInstanceStatus, 'rented'> {
  const { spec, status } = instance;
  const kept = rentedOf(instance);
  if (kept === undefined && status?.claim !== undefined && !serves(spec, status.claim)) {
    return status.rented === undefined ? {} : { rented: status.rented };
  }
  const gpus = kept?.gpus ?? keptGpus(instance, offered);
  const price = keptPrice(instance, offered);
  return { rented: { wish: wishOf(spec), ...(gpus && { gpus }), ...(price && { price }) } };
}
