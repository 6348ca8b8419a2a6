import type { Grant } from '../../../inventory/grant.ts';
import { MOST_CREATED_BY } from '../../../resources/instances/claim.ts';
import {
  type Claim,
  CREATED_BY,
  type GpuInstance,
  type GpuInstanceStatus,
} from '../../../resources/instances/gpu-instance.ts';
import { startHash } from '../../../resources/instances/instance-state.ts';
import { podNameOf } from '../../../resources/pod/owner.ts';
import { type Ending, type SeenEnding, settledEnding } from './endings.ts';
import { nodesToAvoid, withFailure } from './failures.ts';
import type { Settings } from './settings.ts';
import { closedBill } from './usage.ts';

/** Who created an instance, as its bill has it; undefined for a client of the Kubernetes API. */
export function createdByOf({ metadata }: Pick<GpuInstance, 'metadata'>): string | undefined {
  return metadata.annotations?.[CREATED_BY]?.slice(0, MOST_CREATED_BY) || undefined;
}

/** The claim of a granted place. Its price does not change any more. */
export function claimOf(instance: GpuInstance, { place }: Extract<Grant, { place: unknown }>, now: number): Claim {
  const { offerClass, node } = place;
  const interruptible = instance.spec.type === 'Interruptible';
  const share = offerClass.members.find((member) => member.node === node)?.resource.share;
  const createdBy = createdByOf(instance);
  return {
    offerId: offerClass.id,
    pool: offerClass.pool.name,
    node,
    resourceName: offerClass.resourceName,
    product: offerClass.product,
    gpuCount: offerClass.gpuCount,
    ...(share !== undefined && share !== '1' && { gpuShare: share }),
    memoryMb: offerClass.memoryMb,
    isolation: offerClass.isolation,
    ...(offerClass.migProfile !== undefined && { migProfile: offerClass.migProfile }),
    pricePerHour: interruptible ? offerClass.prices.interruptible : offerClass.prices.onDemand,
    currency: offerClass.prices.currency,
    simulated: offerClass.simulated,
    diskGbMax: place.diskGbMax,
    ...(createdBy !== undefined && { createdBy }),
    grantedAt: new Date(now).toISOString(),
  };
}

/** The status of a new start: the claim and the name of the pod are written together, before the pod exists. */
export function claimedStatus(
  instance: GpuInstance,
  claim: Claim,
  disk: { persistent: boolean; settings: Settings },
): GpuInstanceStatus {
  const { ending: _ending, podUid: _uid, podIP: _ip, stages, ...rest } = instance.status ?? {};
  const incarnation = (rest.incarnation ?? 0) + 1;
  const accepted = stages?.accepted;
  return {
    ...rest,
    claim,
    incarnation,
    podName: podNameOf(instance, incarnation),
    image: disk.settings.image,
    runtype: disk.settings.runtype,
    diskGb: disk.settings.diskGb,
    diskPersistent: disk.persistent,
    stages: { ...(accepted !== undefined && { accepted }), claimed: claim.grantedAt },
  };
}

/** The status of a start that ends. */
export function endedStatus(instance: GpuInstance, ending: Ending, now: number): GpuInstanceStatus {
  return {
    ...instance.status,
    ending: {
      reason: ending.reason,
      message: ending.message,
      at: new Date(ending.at ?? now).toISOString(),
      ...(ending.by !== undefined && { by: ending.by }),
      ...(instance.metadata.generation !== undefined && { generation: instance.metadata.generation }),
      startHash: startHash(instance.spec),
      ...(instance.spec.startRequest !== undefined && { startRequest: instance.spec.startRequest }),
    },
  };
}

/** The status when no pod is left: the bill is closed and the place given back, in one write. */
export function releasedStatus(instance: GpuInstance, ending: SeenEnding, now: number): GpuInstanceStatus {
  const { claim, podName: _name, podUid: _uid, podIP: _ip, unhealthyGPUs: _gpus, ...rest } = instance.status ?? {};
  const end = Date.parse(ending.at);
  const bill = closedBill({ ...rest, ...(claim && { claim }) }, end);
  const { failures: before, stages, usage: _usage, ...kept } = rest;
  const upMs = stages?.ready === undefined ? 0 : Math.max(0, end - Date.parse(stages.ready));
  const node = ending.rule.blamesNode ? claim?.node : undefined;
  const failures =
    ending.rule.next === 'backOff'
      ? withFailure(before, { now: end, upMs, node })
      : afterGoodStart(before, ending, now);
  return {
    ...kept,
    ...settledEnding(instance),
    ...bill,
    ...(failures && { failures }),
    stages: { ...stages, stopped: new Date(now).toISOString() },
  };
}

/** A start that its owner ended was good. The nodes where starts failed stay known for a while. */
function afterGoodStart(
  failures: GpuInstanceStatus['failures'],
  ending: SeenEnding,
  now: number,
): GpuInstanceStatus['failures'] {
  if (failures === undefined || ending.rule.next === 'restart') return failures;
  const nodes = nodesToAvoid(failures, now);
  return nodes.length === 0 ? undefined : { count: 0, lastTime: failures.lastTime, nodes };
}
