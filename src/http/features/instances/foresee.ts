import type { CeilingsOf } from '../../../access/ceilings.ts';
import { type BudgetOf, type Price, spentMessage } from '../../../budgets/counted.ts';
import { tenantBudget } from '../../../budgets/words.ts';
import { admission, type Terms, withinCeilings, withinOffers } from '../../../inventory/admission.ts';
import type { PlaceRequest, RefusalReason } from '../../../inventory/grant.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { OfferClass } from '../../../inventory/offers.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import { priceLimitOf } from '../../../resources/instances/rented.ts';

/** Watch caches may be this far behind: a refusal counts only when it is still there after this time. */
const LAG_MS = 200;
const NO_PLACE: ReadonlySet<RefusalReason> = new Set(['OfferNotFound', 'NoCapacity', 'PriceTooHigh']);

export interface Foreseer {
  offers: Pick<Inventory, 'candidates' | 'grant' | 'preempt' | 'heldBy' | 'sharesFor'>;
  ceilings: CeilingsOf;
  budgets: BudgetOf;
  clock: Clock;
}

export type Foreseen = { reason: 'NoPlace' } | { reason: 'TenantLimit' | 'BudgetExceeded'; message: string };

/** What the controller would ask for, or less: what a template or the operator adds is left out. */
function placeRequest(spec: GpuInstanceSpec): PlaceRequest {
  const { offerId, gpu, type, diskGb, image } = spec;
  return {
    maxPrice: priceLimitOf({ spec }),
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

function priceOf({ type }: GpuInstanceSpec, { prices: { interruptible, onDemand, currency } }: OfferClass): Price {
  return { perHour: type === 'Interruptible' ? interruptible : onDemand, currency };
}

function refusalOf(
  { offers, ceilings, budgets }: Foreseer,
  namespace: string,
  spec: GpuInstanceSpec,
): Foreseen | undefined {
  const limit = ceilings(namespace);
  const budget = budgets(namespace);
  const overBudget = (offer: OfferClass): string | undefined =>
    budget && spentMessage(budget, tenantBudget(limit.policies), priceOf(spec, offer));
  const terms: Terms<string> = {
    namespace,
    limit,
    preempt: (request) => offers.preempt(request),
    overBudget: ({ offerClass }) => overBudget(offerClass),
  };
  const within = withinCeilings(offers, terms, placeRequest(spec));
  // The API server says which images the tenant may run.
  if ('overImages' in within) return undefined;
  const { request } = budget === undefined ? within : withinOffers(offers, within.request, overBudget);
  const found = admission(offers, terms, request);
  if ('overGpus' in found) return { reason: 'TenantLimit', message: found.overGpus.message };
  if ('overBudget' in found) return { reason: 'BudgetExceeded', message: found.overBudget };
  const hasNone = 'refusal' in found && NO_PLACE.has(found.refusal);
  return hasNone ? { reason: 'NoPlace' } : undefined;
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
