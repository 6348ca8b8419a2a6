import type { PlaceRequest } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { Clock } from '../../lib/clock.ts';
import type { GpuInstanceSpec } from '../../resources/gpu-instance.ts';

/** Watch caches may be this far behind: a refusal counts only when it is still there after this time. */
const LAG_MS = 200;

type Offers = Pick<Inventory, 'grant' | 'preempt'>;

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

function isRefused(offers: Offers, spec: GpuInstanceSpec): boolean {
  const request = placeRequest(spec);
  const granted = offers.grant(request);
  if (!('refusal' in granted)) return false;
  if (granted.refusal === 'OfferNotFound') return true;
  if (granted.refusal !== 'NoCapacity') return false;
  return spec.type !== 'OnDemand' || offers.preempt(request) === undefined;
}

/** Whether the controller, which alone grants, would refuse by this replica's caches. Then nothing needs writing. */
export async function foreseeRefusal(offers: Offers, spec: GpuInstanceSpec, clock: Clock): Promise<boolean> {
  if (!isRefused(offers, spec)) return false;
  await clock.sleep(LAG_MS);
  return isRefused(offers, spec);
}
