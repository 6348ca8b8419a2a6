import type { PlaceRequest, RefusalReason } from '../../../inventory/grant.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Ending } from './endings.ts';
import { nodesToAvoid } from './failures.ts';
import type { Observed } from './observed.ts';
import type { Settings } from './settings.ts';
import type { Waiting } from './status/ready.ts';

/** The place that an instance asks for. `only` are the nodes that its disk can be used on, undefined for all. */
export function requestOf({ instance, now }: Observed, settings: Settings, only: PlaceRequest['only']): PlaceRequest {
  const { offerId, gpu, type, offerDiskSpace } = instance.spec;
  return {
    offerId,
    gpu,
    type,
    diskGb: settings.diskGb,
    // The client saw the offer before the first start. Later starts take what there is.
    offerDiskSpace: (instance.status?.incarnation ?? 0) === 0 ? offerDiskSpace : undefined,
    image: settings.image,
    avoid: new Set(nodesToAvoid(instance.status?.failures, now)),
    only,
  };
}

/** Why there is no place. A disk may be tied to nodes of which none is left: then waiting for GPUs is not enough. */
export function refusalMessage({ only }: PlaceRequest, message: string): string {
  if (only === undefined || only.size > 0) return message;
  return 'No node is left that can mount the disk of this instance. Bring its node back, or delete the instance and create it anew: without its node the files on the disk are lost.';
}

/** What follows when there is no place: the instance waits in line, or its start ends where waiting does not help. */
export function withoutPlace(
  { spec }: GpuInstance,
  refusal: RefusalReason,
  message: string,
): { waiting: Waiting } | { refused: Ending } {
  const canHeal = refusal === 'NoCapacity' || refusal === 'OfferNotFound';
  if (spec.onNoCapacity === 'Fail' || !canHeal) return { refused: { reason: refusal, message } };
  return { waiting: { reason: refusal === 'NoCapacity' ? 'WaitingForCapacity' : refusal, message } };
}
