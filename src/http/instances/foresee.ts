import type { PlaceRequest } from '../../inventory/grant.ts';
import type { Clock } from '../../lib/clock.ts';
import type { GpuInstanceSpec } from '../../resources/gpu-instance.ts';
import type { Inventory } from '../../inventory/inventory.ts';

/** How far a watch cache may be behind: a refusal holds only when it still holds after this time. */
const LAG_MS = 200;

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

type Offers = Pick<Inventory, 'grant' | 'preempt'>;

function isHopeless(offers: Offers, spec: GpuInstanceSpec): boolean {
  const request = placeRequest(spec);
  const granted = offers.grant(request);
  if (!('refusal' in granted)) return false;
  if (granted.refusal === 'OfferNotFound') return true;
  if (granted.refusal !== 'NoCapacity') return false;
  return spec.type !== 'OnDemand' || offers.preempt(request) === undefined;
}

/**
 * Whether the controller would refuse, as far as this replica's caches tell: then nothing needs to be written to say no.
 * Only the controller says yes.
 */
export async function foreseeRefusal(offers: Offers, spec: GpuInstanceSpec, clock: Clock): Promise<boolean> {
  if (!isHopeless(offers, spec)) return false;
  await clock.sleep(LAG_MS);
  return isHopeless(offers, spec);
}
