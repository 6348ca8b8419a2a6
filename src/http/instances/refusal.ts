import type { GpuInstance } from '../../resources/gpu-instance.ts';
import { instanceState } from '../../resources/instance-state.ts';
import { ApiError, validationFailed } from '../errors/api-error.ts';
import type { Offer } from '../../inventory/offers.ts';
import { byPrice, toOfferRecord } from '../records/offer-record.ts';

const MOST_ALTERNATIVES = 5;

/** What a client asked for, as far as it decides what is near. */
export interface Wish {
  offerId?: number | undefined;
  diskGb?: number | undefined;
}

/**
 * Free offers that come nearest to the one that was asked for: those with the same GPU first, then the same number of
 * GPUs, then the cheapest.
 */
export function alternatives(offers: readonly Offer[], wish: Wish): Offer[] {
  const asked = offers.find(({ id }) => id === wish.offerId);
  const distance = (offer: Offer): number =>
    asked === undefined ? 0 : (offer.product === asked.product ? 0 : 2) + (offer.gpuCount === asked.gpuCount ? 0 : 1);
  return offers
    .filter(({ available, diskGbMax, id }) => available > 0 && diskGbMax >= (wish.diskGb ?? 0) && id !== wish.offerId)
    .toSorted((a, b) => distance(a) - distance(b) || byPrice(a, b))
    .slice(0, MOST_ALTERNATIVES);
}

/** The 409 that says no and what could be had instead. */
export function offerUnavailable(offers: readonly Offer[], wish: Wish, image: string): ApiError {
  const near = alternatives(offers, wish);
  const what = wish.offerId === undefined ? 'No offer is free' : `Offer ${wish.offerId} is not available`;
  const rest = near.length === 0 ? 'Nothing else is free either; try later.' : 'See alternatives.';
  return new ApiError('offer_unavailable', `${what}. Nothing was rented. ${rest}`, {
    extra: { alternatives: near.map((offer) => toOfferRecord(offer, image)) },
  });
}

/** The answer for an instance that the controller refused, from the reason it gave. */
export function refusal(instance: GpuInstance, offers: readonly Offer[], image: string): ApiError {
  // What was refused may be on its way out by now; what counts is the reason it had.
  const { deletionTimestamp: _leaving, ...metadata } = instance.metadata;
  const { reason, message } = instanceState({ ...instance, metadata });
  const { offerId, diskGb } = instance.spec;
  const wish = { offerId, diskGb };
  if (reason === 'TemplateNotFound') return validationFailed([{ path: 'template_id', expected: message }]);
  if (reason === 'InvalidImage') return validationFailed([{ path: 'template_image', expected: message }]);
  if (reason === 'QuotaExceeded') return new ApiError('quota_exceeded', `Nothing was rented. ${message}`);
  const unavailable = offerUnavailable(offers, wish, image);
  if (reason !== 'OfferChanged') return unavailable;
  const text = `Offer ${offerId} now has less disk than offer_disk_space. Nothing was rented. Read the offers again.`;
  const current = offers.find(({ id }) => id === offerId);
  const extra = { ...unavailable.extra, ...(current && { offer: toOfferRecord(current, image) }) };
  return new ApiError('offer_changed', text, { extra });
}
