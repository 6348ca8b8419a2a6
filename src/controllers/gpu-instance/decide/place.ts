import type { Grant, PlaceRequest, RefusalReason } from '../../../inventory/grant.ts';
import type { Ceilings } from '../../../resources/tenants/ceilings.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { Ending } from './endings.ts';
import { nodesToAvoid } from './failures.ts';
import { isolationNeeds } from './refusals/forbidden.ts';
import type { Observed } from './observed.ts';
import type { Settings } from './settings.ts';
import type { Waiting } from './status/ready.ts';

/** The place that an instance asks for. `only` are the nodes that its disk can be used on, undefined for all. */
export function requestOf(
  { instance, now }: Observed,
  settings: Settings,
  { only, ceilings }: { only: PlaceRequest['only']; ceilings: Ceilings },
): PlaceRequest {
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
    isolation: isolationNeeds(instance.spec, ceilings),
  };
}

/** Says what free places lack, when one would do for an instance that asks for no isolation of its own. */
export function missingIsolation(
  request: PlaceRequest,
  grant: (request: PlaceRequest) => Grant,
  { hostUsers }: Pick<GpuInstance['spec'], 'hostUsers'>,
): string | undefined {
  const { isolation, ...rest } = request;
  if (isolation === undefined || !('place' in grant(rest))) return undefined;
  const { runtimeClassName, userNamespaces } = isolation;
  const asked = hostUsers === false ? 'spec.hostUsers is false' : 'the operator requires it in the TenantPolicy';
  const lacks = [
    ...(userNamespaces ? [`runs pods in user namespaces (${asked})`] : []),
    ...(runtimeClassName === undefined ? [] : [`is in a pool that runs RuntimeClass ${runtimeClassName}`]),
  ];
  return `GPUs are free, but not on a node that ${lacks.join(' and ')}. Wait for one, or ask the operator.`;
}

/** What follows when no node is left that can mount the disk: no GPUs that become free would help. */
export function withoutDiskNode({ spec }: GpuInstance): { waiting: Waiting } | { refused: Ending } {
  const message =
    'No node is left that can mount the disk of this instance. The operator can bring such a node back. Or delete the instance and create it anew: without its node the files on the disk are lost.';
  if (spec.onNoCapacity === 'Fail') return { refused: { reason: 'NoCapacity', message } };
  return { waiting: { reason: 'DiskNodeGone', message } };
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
