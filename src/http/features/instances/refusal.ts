import { fits, isWithin, priceFor } from '../../../inventory/grant.ts';
import type { Offer } from '../../../inventory/offers.ts';
import { priceLimitOf } from '../../../resources/instances/rented.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { ApiError, validationFailed } from '../../interface/errors/api-error.ts';
import { byPrice, toOfferRecord } from '../offers/record.ts';

const MOST_ALTERNATIVES = 5;

/** What a client asked for, as far as it matters for alternatives. */
export interface Asked {
  offerId?: number | undefined;
  diskGb?: number | undefined;
  gpu?: GpuInstanceSpec['gpu'];
  type?: GpuInstanceSpec['type'];
  maxPricePerHour?: string | undefined;
}

/**
 * The offers nearest to the asked one that a request of its type would get: those with its GPU first, then its number of
 * GPUs, then those for which nobody ends, then the cheapest.
 */
export function alternatives(offers: readonly Offer[], asked: Asked): Offer[] {
  const named = offers.find(({ id }) => id === asked.offerId);
  const { product, gpuCount } = named ?? { product: asked.gpu?.product, gpuCount: asked.gpu?.count };
  const distance = (offer: Offer): number =>
    (product === undefined || offer.product === product ? 0 : 2) +
    (gpuCount === undefined || offer.gpuCount === gpuCount ? 0 : 1);
  const isTaken = ({ available }: Offer): number => (available > 0 ? 0 : 1);
  return offers
    .filter((offer) => hasPlace(offer, asked) && offer.diskGbMax >= (asked.diskGb ?? 0) && offer.id !== asked.offerId)
    .toSorted((a, b) => distance(a) - distance(b) || isTaken(a) - isTaken(b) || byPrice(a, b))
    .slice(0, MOST_ALTERNATIVES);
}

/** Whether a request of this type would get a place of the offer now. */
function hasPlace({ available, availableByPreemption }: Offer, { type = 'OnDemand' }: Asked): boolean {
  return available > 0 || (type === 'OnDemand' && availableByPreemption > 0);
}

/** Whether the offers show a place for what was asked: then only the controller knows why it gave none. */
function isShown(offers: readonly Offer[], asked: Asked): boolean {
  const { offerId, gpu, diskGb = 0, type = 'OnDemand' } = asked;
  const maxPrice = priceLimitOf({ spec: asked });
  const named = offers.filter((offer) => (offerId === undefined ? fits(offer, gpu) : offer.id === offerId));
  return named.some(
    (offer) => hasPlace(offer, asked) && offer.diskGbMax >= diskGb && isWithin(offer, { type, maxPrice }),
  );
}

function whatFails(offers: readonly Offer[], asked: Asked): string {
  const { offerId, diskGb = 0, type = 'OnDemand', maxPricePerHour } = asked;
  const maxPrice = priceLimitOf({ spec: asked });
  if (offerId === undefined)
    return maxPrice === undefined ? 'No free offer fits.' : 'No free offer fits at this price.';
  const named = offers.find(({ id }) => id === offerId);
  // Without the number: one that a double cannot hold would be shown as another.
  if (named === undefined) return 'No offer has this ask_id now.';
  if (!isWithin(named, { type, maxPrice }))
    return `Offer ${offerId} costs ${priceFor(named, type)} ${named.prices.currency} per hour, and max_price_per_hour is ${maxPricePerHour}.`;
  return named.available > 0 && named.diskGbMax < diskGb
    ? `Offer ${offerId} has ${named.diskGbMax} GB of disk, and disk_gb asks for ${diskGb}.`
    : `Offer ${offerId} has no free place.`;
}

function withoutAlternatives(offers: readonly Offer[], asked: Asked): string {
  const { offerId, diskGb } = asked;
  const free = offers.filter((offer) => hasPlace(offer, asked) && offer.id !== offerId);
  if (free.length === 0) return 'No other offer is free either; try again later.';
  const largest = Math.max(...free.map(({ diskGbMax }) => diskGbMax));
  return `No other free offer has ${diskGb} GB of disk; the largest has ${largest} GB.`;
}

/** The 404 for a template that the tenant may not use, or that nobody has. */
export function templateNotFound({ templateId }: Pick<GpuInstanceSpec, 'templateId' | 'templateHashId'>): ApiError {
  const field = templateId === undefined ? 'template_hash_id' : 'template_id (and template_hash_id, when it is sent)';
  const message = `Nothing was rented. This tenant has no template with this ${field}. Send another one, or none.`;
  return new ApiError('template_not_found', message);
}

/** The 403 for a tenant whose ceilings have no room. */
export function tenantLimit(message: string): ApiError {
  return new ApiError('tenant_limit', `Nothing was rented. ${message}`);
}

/** The 403 for a budget that has no room. */
export function budgetExceeded(message: string): ApiError {
  return new ApiError('budget_exceeded', `Nothing was rented. ${message}`);
}

/** The 409 that refuses and lists alternatives. `said`: why the controller refused. */
export function offerUnavailable(offers: readonly Offer[], asked: Asked, image: string, said?: string): ApiError {
  const near = alternatives(offers, asked);
  const rest = near.length === 0 ? withoutAlternatives(offers, asked) : 'See alternatives for free offers.';
  const why = said && isShown(offers, asked) ? said : whatFails(offers, asked);
  return new ApiError('offer_unavailable', `${why} Nothing was rented. ${rest}`, {
    extra: { alternatives: near.map((offer) => toOfferRecord(offer, image)) },
  });
}

/** The answer for an instance that the controller refused, by the reason in its status. */
export function refusal(instance: GpuInstance, offers: readonly Offer[], image: string): ApiError {
  // The instance may be in deletion by now, which would hide the reason of the refusal.
  const { deletionTimestamp: _deleted, ...metadata } = instance.metadata;
  const { reason, message } = instanceState({ ...instance, metadata });
  const { offerId, diskGb, gpu, type, maxPricePerHour } = instance.spec;
  const asked = { offerId, diskGb, gpu, type, maxPricePerHour };
  if (reason === 'NamespaceTerminating') return new ApiError('tenant_unavailable', `Nothing was rented. ${message}`);
  if (reason === 'TemplateNotFound') return templateNotFound(instance.spec);
  if (reason === 'TemplateTooLarge') return validationFailed([{ path: 'template_id', expected: message }]);
  if (reason === 'InvalidImage') return validationFailed([{ path: 'template_image', expected: message }]);
  if (reason === 'ForbiddenEnv') return validationFailed([{ path: 'template_id', expected: message }]);
  if (reason === 'ForbiddenRoot') return validationFailed([{ path: 'run_as_root', expected: message }]);
  if (reason === 'QuotaExceeded' || reason === 'PodRejected' || reason === 'NetworkOpen')
    return new ApiError('quota_exceeded', `Nothing was rented. ${message}`);
  if (reason === 'TenantLimit') return tenantLimit(message);
  if (reason === 'BudgetExceeded') return budgetExceeded(message);
  const isSaid = reason === 'NoCapacity' || reason === 'WaitingForCapacity';
  const unavailable = offerUnavailable(offers, asked, image, isSaid ? message : undefined);
  if (reason !== 'OfferChanged') return unavailable;
  const which = offerId === undefined ? 'The cheapest free offer' : `Offer ${offerId} now`;
  const text = `${which} has less disk than offer_disk_space. Nothing was rented. Read the offers again.`;
  const current = offers.find(({ id }) => id === offerId);
  const extra = { ...unavailable.extra, ...(current && { offer: toOfferRecord(current, image) }) };
  return new ApiError('offer_changed', text, { extra });
}
