import type { CeilingsOf } from '../../access/ceilings.ts';
import { gpuRefusal, gpusOf } from '../../inventory/gpu-ceilings.ts';
import type { Place, PlaceRequest, RefusalReason } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { Clock } from '../../lib/clock.ts';
import type { GpuInstanceSpec } from '../../resources/gpu-instance.ts';

/** Watch caches may be this far behind: a refusal counts only when it is still there after this time. */
const LAG_MS = 200;

export interface Foreseer {
  offers: Pick<Inventory, 'grant' | 'preempt' | 'heldBy'>;
  ceilings: CeilingsOf;
  clock: Clock;
}

export type Foreseen = { reason: 'NoPlace' } | { reason: 'TenantLimit'; message: string };

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
function placeFor(offers: Foreseer['offers'], spec: GpuInstanceSpec): Place | RefusalReason {
  const request = placeRequest(spec);
  const granted = offers.grant(request);
  if ('place' in granted) return granted.place;
  const isFull = granted.refusal === 'NoCapacity';
  const preemption = isFull && spec.type === 'OnDemand' ? offers.preempt(request) : undefined;
  return preemption?.place ?? granted.refusal;
}

function refusalOf({ offers, ceilings }: Foreseer, namespace: string, spec: GpuInstanceSpec): Foreseen | undefined {
  const place = placeFor(offers, spec);
  if (place === 'OfferNotFound' || place === 'NoCapacity') return { reason: 'NoPlace' };
  if (typeof place === 'string') return undefined;
  const over = gpuRefusal(ceilings(namespace), offers.heldBy(namespace), gpusOf(place));
  return over && { reason: 'TenantLimit', message: over.message };
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
