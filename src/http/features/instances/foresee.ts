import type { CeilingsOf } from '../../../access/ceilings.ts';
import { type BudgetOf, type Price, spentMessage } from '../../../budgets/counted.ts';
import { tenantBudget } from '../../../budgets/words.ts';
import { gpuRefusal, roomlessShares } from '../../../inventory/gpu-ceilings.ts';
import { gpuShareOf, type Place, type PlaceRequest, type RefusalReason } from '../../../inventory/grant.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import { allowsImage } from '../../../resources/tenants/ceilings.ts';

/** Watch caches may be this far behind: a refusal counts only when it is still there after this time. */
const LAG_MS = 200;

export interface Foreseer {
  offers: Pick<Inventory, 'grant' | 'preempt' | 'heldBy' | 'sharesFor'>;
  ceilings: CeilingsOf;
  budgets: BudgetOf;
  clock: Clock;
}

export type Foreseen = { reason: 'NoPlace' } | { reason: 'TenantLimit' | 'BudgetExceeded'; message: string };

function placeRequest({ offerId, gpu, type, diskGb, image }: GpuInstanceSpec): PlaceRequest {
  return {
    offerId,
    gpu,
    type,
    diskGb: diskGb ?? 1,
    offerDiskSpace: undefined,
    image: image ?? '',
    avoid: new Set(),
    only: undefined,
  };
}

/** A place, or why there is none. */
function placeFor(
  offers: Foreseer['offers'],
  type: GpuInstanceSpec['type'],
  request: PlaceRequest,
): Place | RefusalReason {
  const granted = offers.grant(request);
  if ('place' in granted) return granted.place;
  const isFull = granted.refusal === 'NoCapacity';
  const preemption = isFull && type === 'OnDemand' ? offers.preempt(request) : undefined;
  return preemption?.place ?? granted.refusal;
}

function priceOf({ type }: GpuInstanceSpec, { offerClass }: Place): Price {
  const { interruptible, onDemand, currency } = offerClass.prices;
  return { perHour: type === 'Interruptible' ? interruptible : onDemand, currency };
}

function refusalOf(
  { offers, ceilings, budgets }: Foreseer,
  namespace: string,
  spec: GpuInstanceSpec,
): Foreseen | undefined {
  const limit = ceilings(namespace);
  // The API server says which images the tenant may run.
  if (spec.image !== undefined && !allowsImage(limit.images, spec.image)) return undefined;
  const fitting = placeRequest(spec);
  const without = roomlessShares(limit, offers, namespace, fitting);
  const place = placeFor(offers, spec.type, without.length === 0 ? fitting : { ...fitting, without });
  if (place === 'OfferNotFound' || place === 'NoCapacity') return { reason: 'NoPlace' };
  if (typeof place === 'string') return undefined;
  const over = gpuRefusal(limit, offers.heldBy(namespace), gpuShareOf(place.offerClass));
  if (over !== undefined) return { reason: 'TenantLimit', message: over.message };
  const budget = budgets(namespace);
  const message = budget && spentMessage(budget, tenantBudget(limit.policies), priceOf(spec, place));
  return message === undefined ? undefined : { reason: 'BudgetExceeded', message };
}

/**
 * Why the controller, which alone grants, would refuse by this replica's caches; undefined when it may grant. Then
 * nothing needs writing: a tenant at its ceiling costs the API server nothing.
 */
export async function foreseeRefusal(
  deps: Foreseer,
  namespace: string,
  spec: GpuInstanceSpec,
): Promise<Foreseen | undefined> {
  if (refusalOf(deps, namespace, spec) === undefined) return undefined;
  await deps.clock.sleep(LAG_MS);
  return refusalOf(deps, namespace, spec);
}
