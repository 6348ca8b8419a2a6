import type { TenantCeilings } from '../resources/tenants/tenant-limit.ts';
import { type CeilingRefusal, gpuRefusal, imageRefusal } from './ceilings.ts';
import { gpuShareOf, type Place, type PlaceRequest, type RefusalReason } from './grant.ts';
import type { Inventory } from './inventory.ts';
import type { OfferClass } from './offers.ts';
import type { Preemption } from './preempt.ts';
import type { GpuShare } from './tenant-holdings.ts';

/** What holds for the tenant who asks. */
export interface Terms<Over> {
  namespace: string;
  limit: Pick<TenantCeilings, 'gpus' | 'images' | 'policies'>;
  /** What makes room for an on-demand request; undefined when nothing does. */
  preempt: (request: PlaceRequest) => Preemption | undefined;
  /** Why a budget has no room for this place; undefined when each has. */
  overBudget: (place: Place) => Over | undefined;
}

/** The GPUs that fit a request, and that the ceilings have no room for. */
export function overCeilings(
  supply: Pick<Inventory, 'sharesFor' | 'heldBy'>,
  { namespace, limit }: Pick<Terms<unknown>, 'namespace' | 'limit'>,
  request: PlaceRequest,
): { shares: readonly GpuShare[]; over: readonly GpuShare[] } {
  if (limit.gpus.length === 0) return { shares: [], over: [] };
  const shares = supply.sharesFor(request);
  const held = supply.heldBy(namespace);
  return { shares, over: shares.filter((share) => gpuRefusal(limit, held, share) !== undefined) };
}

/**
 * The request as the ceilings leave it: without GPUs that fit and that they have no room for, or refused for its image.
 * Where they have room for none that fit, all stay: {@link admission} says why. No image: it is not known.
 */
export function withinCeilings(
  supply: Pick<Inventory, 'sharesFor' | 'heldBy'>,
  terms: Pick<Terms<unknown>, 'namespace' | 'limit'>,
  request: PlaceRequest,
): { request: PlaceRequest; without: readonly GpuShare[] } | { overImages: CeilingRefusal } {
  const overImages = request.image === '' ? undefined : imageRefusal(terms.limit, request.image);
  if (overImages !== undefined) return { overImages };
  const { shares, over: without } = overCeilings(supply, terms, request);
  if (without.length === 0 || without.length === shares.length) return { request, without: [] };
  return { request: { ...request, without }, without };
}

/**
 * The request without the offers that are refused: a place that is refused is not asked for while another may serve. Where
 * all are, all stay: {@link admission} says why. With the refusals, in the order of {@link Inventory.candidates}.
 */
export function withinOffers<Refusal>(
  supply: Pick<Inventory, 'candidates'>,
  request: PlaceRequest,
  refusalOf: (offer: OfferClass) => Refusal | undefined,
): { request: PlaceRequest; refused: readonly Refusal[] } {
  const offers = supply.candidates(request);
  const found = offers.map((offer) => ({ id: offer.id, refusal: refusalOf(offer) }));
  const refused = found.flatMap(({ refusal }) => refusal ?? []);
  if (refused.length === 0 || refused.length === offers.length) return { request, refused };
  const withoutOffers = found.flatMap(({ id, refusal }) => (refusal === undefined ? [] : [id]));
  return { request: { ...request, withoutOffers }, refused };
}

/** A place; or what must make room for it first; or why there is none. */
type Found = { place: Place } | { preemption: Preemption } | { refusal: RefusalReason; message: string };

/** The same, or why the tenant may not have the place. */
export type Admission<Over> = Found | { overGpus: CeilingRefusal } | { overBudget: Over };

function findPlace(
  supply: Pick<Inventory, 'grant'>,
  { preempt }: Pick<Terms<unknown>, 'preempt'>,
  request: PlaceRequest,
): Found {
  const granted = supply.grant(request);
  const mayPreempt = 'refusal' in granted && granted.refusal === 'NoCapacity' && request.type === 'OnDemand';
  const preemption = mayPreempt ? preempt(request) : undefined;
  return preemption === undefined ? granted : { preemption };
}

/**
 * Whether a tenant gets a place now. The controller grants by this, and the HTTP interface foresees by it what the
 * controller would refuse. What makes room is only named: no instance must go for a place that a ceiling refuses.
 */
export function admission<Over>(
  supply: Pick<Inventory, 'grant' | 'heldBy'>,
  terms: Terms<Over>,
  request: PlaceRequest,
): Admission<Over> {
  const found = findPlace(supply, terms, request);
  if ('refusal' in found) return found;
  const place = placeOf(found);
  const overGpus = gpuRefusal(terms.limit, supply.heldBy(terms.namespace), gpuShareOf(place.offerClass));
  if (overGpus !== undefined) return { overGpus };
  const overBudget = terms.overBudget(place);
  return overBudget === undefined ? found : { overBudget };
}

/** The place that is found, whether it is free or will be. */
export function placeOf(found: Exclude<Found, { refusal: unknown }>): Place {
  return 'place' in found ? found.place : found.preemption.place;
}
