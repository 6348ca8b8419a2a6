import type { GpuWish, Grant, PlaceRequest, RefusalReason } from '../../../inventory/grant.ts';
import { priceLimitOf, rentedOf } from '../../../resources/instances/rented.ts';
import type { Ceilings } from '../../../resources/tenants/ceilings.ts';
import { findCondition } from '../../../kube/conditions.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { ReadyReason } from '../../../resources/instances/instance-state.ts';
import { DISK_ANNOTATION, diskNameOf } from '../../../resources/pod/disk.ts';
import { type Ending, isOwed } from './endings.ts';
import { nodesToAvoid } from './failures.ts';
import { isolationNeeds } from './refusals/forbidden.ts';
import type { Observed } from './observed.ts';
import type { Settings } from './settings.ts';
import type { Waiting } from './status/ready.ts';

/** The GPUs that an instance asks for, whatever they cost. */
export function wishFor(instance: Pick<GpuInstance, 'spec' | 'status'>): GpuWish {
  const { offerId, gpu, type } = instance.spec;
  return { offerId, gpu, rented: rentedOf(instance)?.gpus, type };
}

/** The place that an instance asks for. `only` are the nodes that its disk can be used on, undefined for all. */
export function requestOf(
  { instance, disk, now }: Observed,
  settings: Settings,
  { only, ceilings }: { only: PlaceRequest['only']; ceilings: Ceilings },
): PlaceRequest {
  const { offerDiskSpace } = instance.spec;
  return {
    ...wishFor(instance),
    maxPrice: priceLimitOf(instance),
    // A disk that is there asks nothing of what an offer has for a new one.
    diskGb: disk === undefined ? settings.diskGb : 0,
    // The client saw the offer before the first start. Later starts take what there is.
    offerDiskSpace: disk === undefined && (instance.status?.incarnation ?? 0) === 0 ? offerDiskSpace : undefined,
    image: settings.image,
    avoid: new Set(nodesToAvoid(instance.status?.failures, now)),
    only,
    persistent: disk !== undefined,
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

/** Whether Berth owes the start: it ended the one before, or others for this one. They do not end for nothing. */
function isPromised(instance: Pick<GpuInstance, 'metadata' | 'status'>): boolean {
  return isOwed(instance) || instance.status?.othersEnded === true;
}

/** What is said of an instance for which a place was looked for: all that speaks against it for good comes before. */
const LOOKED_FOR: ReadonlySet<string> = new Set<ReadyReason>([
  'WaitingForCapacity',
  'PlaceComing',
  'WaitingForOffer',
  'PriceTooHigh',
  'QuotaExceeded',
  'TenantLimit',
  'BudgetExceeded',
]);

/** Whether an instance waits for a place as it is. What waits does not fail for what the fleet has lost since. */
function hasWaited({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): boolean {
  const isSame = status?.ending === undefined && status?.observedGeneration === metadata.generation;
  return isSame && LOOKED_FOR.has(findCondition(status?.conditions, 'Claimed')?.reason ?? '');
}

/**
 * Whether an instance goes on waiting although no pool has its RuntimeClass: pools go and come back, as when an operator
 * writes one anew or a backup brings them after the instances. It gets a place nowhere else. Where pools are, one that is
 * new, or that its owner has edited, may ask for what nobody has.
 */
export function mayPoolCome(instance: Pick<GpuInstance, 'metadata' | 'status'>, pools: Iterable<unknown>): boolean {
  return [...pools].length === 0 || hasWaited(instance) || isPromised(instance);
}

/** Whether an instance starts because something is back that it had: its disk, or, from a backup, the instance itself. */
function isBack({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): boolean {
  const hadDisk = metadata.annotations?.[DISK_ANNOTATION] === diskNameOf({ metadata });
  return status?.ending === undefined && ((status?.incarnation ?? 0) > 0 || hadDisk);
}

/** Whether an instance without a place fails: spec.onNoCapacity speaks of the starts that a person asks for. */
export function mayFail(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): boolean {
  return instance.spec.onNoCapacity === 'Fail' && !isPromised(instance) && !isBack(instance);
}

/** What follows when no node is left that can mount the disk: no GPUs that become free would help. */
export function withoutDiskNode(instance: GpuInstance): { waiting: Waiting } | { refused: Ending } {
  const message =
    'No node is left that can mount the disk of this instance. The operator can bring such a node back. Or delete the instance and create it anew: without its node the files on the disk are lost.';
  if (mayFail(instance)) return { refused: { reason: 'NoCapacity', message } };
  return { waiting: { reason: 'DiskNodeGone', message } };
}

/**
 * What follows when there is no place: the instance waits in line, or its start ends where waiting does not help. A
 * start that Berth owes ends for no such reason: its disk and its GPUs were there once, and the operator can bring them
 * back.
 */
export function withoutPlace(
  instance: GpuInstance,
  refusal: RefusalReason,
  message: string,
): { waiting: Waiting } | { refused: Ending } {
  const { spec, status } = instance;
  // Its owner, or the operator, has the last word about a price. Only a first request is answered at once.
  const mayWait = spec.onNoCapacity === 'Queue' || (status?.incarnation ?? 0) > 0 || isPromised(instance);
  if (refusal === 'PriceTooHigh' && mayWait) return { waiting: { reason: refusal, message } };
  if (refusal === 'PriceTooHigh') return { refused: { reason: 'NoCapacity', message } };
  // Who named the disk of an offer had no start yet, and must not wait at the head of the line for another.
  const isKept =
    (isPromised(instance) && refusal !== 'OfferChanged') || (hasWaited(instance) && refusal === 'DiskTooLarge');
  const isFull = refusal === 'NoCapacity' || isKept;
  if (mayFail(instance) || (!isFull && refusal !== 'OfferNotFound')) return { refused: { reason: refusal, message } };
  return { waiting: { reason: isFull ? 'WaitingForCapacity' : 'WaitingForOffer', message } };
}
