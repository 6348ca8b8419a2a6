import type { Grant } from '../../../inventory/grant.ts';
import { MOST_CREATED_BY, type Payers } from '../../../resources/instances/claim.ts';
import {
  type Claim,
  CREATED_BY,
  type GpuInstance,
  type GpuInstanceStatus,
  STARTED_BY,
} from '../../../resources/instances/gpu-instance.ts';
import {
  hasNewStartRequest,
  isOfHash,
  startHash,
  withStartRequest,
} from '../../../resources/instances/instance-state.ts';
import { firstRan, meterEnded } from '../../../resources/instances/meter.ts';
import { podNameOf } from '../../../resources/pod/owner.ts';
import { type Ending, endingOf, type SeenEnding, settledEnding } from './endings.ts';
import { deletingLimit } from './expiry.ts';
import { withFailure, withoutCount, withStart } from './failures.ts';
import { withPreemption } from './preemptions.ts';
import { keptRented } from './rented.ts';
import type { Settings } from './settings.ts';
import { closedBill } from './usage.ts';

/** Who asked over HTTP for the start that the spec asks for; undefined where the request is another's, or an old one. */
function starterOf(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): string | undefined {
  const { startRequest } = instance.spec;
  const text = instance.metadata.annotations?.[STARTED_BY];
  if (!hasNewStartRequest(instance) || text?.startsWith(`${startRequest} `) !== true) return undefined;
  return text.slice(`${startRequest} `.length);
}

/**
 * Who pays for the next start. The caller who asked for it is one of them, if that is another; a start that Berth owes, as
 * after a preemption, has no new start request, and was asked for by nobody.
 */
export function payersOf(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): Payers {
  const named = (text: string | undefined): string | undefined => text?.slice(0, MOST_CREATED_BY) || undefined;
  const createdBy = named(instance.metadata.annotations?.[CREATED_BY]);
  const startedBy = named(starterOf(instance));
  return {
    ...(createdBy !== undefined && { createdBy }),
    ...(startedBy !== undefined && startedBy !== createdBy && { startedBy }),
  };
}

/** The claim of a granted place. Its price does not change any more. */
export function claimOf(
  instance: GpuInstance,
  { place, byPreemption = false }: Extract<Grant, { place: unknown }> & { byPreemption?: boolean },
  now: number,
): Claim {
  const { offerClass, node } = place;
  const interruptible = instance.spec.type === 'Interruptible';
  const share = offerClass.members.find((member) => member.node === node)?.resource.share;
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
    ...payersOf(instance),
    ...(byPreemption && { byPreemption }),
    grantedAt: new Date(now).toISOString(),
  };
}

/** The status of a new start: the claim and the name of the pod are written together, before the pod exists. */
export function claimedStatus(
  instance: GpuInstance,
  claim: Claim,
  disk: { persistent: boolean; settings: Settings },
): GpuInstanceStatus {
  const {
    ending: _ending,
    podUid: _uid,
    podIP: _ip,
    silences: _silences,
    othersEnded: _others,
    stages,
    ...rest
  } = instance.status ?? {};
  const incarnation = (rest.incarnation ?? 0) + 1;
  const accepted = stages?.accepted;
  const { uid } = instance.metadata;
  return {
    ...rest,
    ...(uid !== undefined && { uid }),
    ...withStartRequest(instance.status ?? {}, instance.spec),
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

/** Whether the status is that of another instance, which had this name before: a backup brought it back. */
export function isBroughtBack({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): boolean {
  return status?.uid !== undefined && status.uid !== metadata.uid;
}

/** Generations of objects begin at 1: an ending of this one is of no spec that is there. */
const OF_ANOTHER_OBJECT = 0;

/**
 * An ending that a backup brought back. The generations of the new object begin at 1 again and come to that number by
 * edits: one of them would ask for nothing, or a start would be owed that is not. The hash says what was edited. An ending
 * that had none although nothing was edited since goes on holding the instance.
 */
function readmittedEnding({ metadata, status }: GpuInstance): Pick<GpuInstanceStatus, 'ending'> {
  const { ending, observedGeneration } = status ?? {};
  if (ending?.generation === undefined) return {};
  // Who brings back an instance that was to be deleted for its limit wants it, and its disk.
  const { generation: before, limit: _limit, ...rest } = ending;
  const holds = ending.startHash === undefined && before === observedGeneration;
  const generation = holds ? metadata.generation : OF_ANOTHER_OBJECT;
  return { ending: { ...rest, ...(generation !== undefined && { generation }) } };
}

/** A status that a backup brought back, without the starts that usage records of the instance of before have. */
export function readmittedStatus(instance: GpuInstance, recorded: ReadonlySet<number>): GpuInstanceStatus {
  const { metadata, status = {} } = instance;
  const { uid: _uid, intervals, claim, stages, ...rest } = status;
  const { uid } = metadata;
  const kept: GpuInstanceStatus = {
    ...rest,
    ...readmittedEnding(instance),
    ...(uid !== undefined && { uid }),
    ...(stages && { stages }),
  };
  if (intervals !== undefined) kept.intervals = intervals.filter(({ start }) => !recorded.has(start));
  if (claim === undefined) return kept;
  if (!recorded.has(status.incarnation ?? 0)) return { ...kept, claim };
  const { byPreemption: _byPreemption, ...unbilled } = claim;
  const { started: _started, ready: _ready, ...others } = stages ?? {};
  return { ...kept, claim: unbilled, stages: others };
}

/**
 * The status of a start that ends. `madeOf`: the hash of the spec that it was made of. What its owner has edited since asks
 * for another start as it would after the end.
 */
export function endedStatus(
  instance: GpuInstance,
  ending: Ending,
  now: number,
  madeOf = startHash(instance.spec),
): GpuInstanceStatus {
  const generation = isOfHash(madeOf, instance.spec) ? instance.metadata.generation : OF_ANOTHER_OBJECT;
  const limit = deletingLimit(ending.reason, instance.spec);
  const { disk, othersEnded: _o, ...status } = instance.status ?? {};
  const { uid } = instance.metadata;
  return {
    ...status,
    ...(uid !== undefined && { uid }),
    ...withStartRequest(instance.status ?? {}, instance.spec),
    // Told once: the start that its owner asks for then makes a new disk.
    ...(disk !== undefined && ending.reason !== 'DiskLost' && { disk }),
    ending: {
      reason: ending.reason,
      message: ending.message,
      at: new Date(ending.at ?? now).toISOString(),
      ...(ending.at !== undefined && { finishedAt: new Date(ending.at).toISOString() }),
      ...(ending.by !== undefined && { by: ending.by }),
      ...(limit !== undefined && { limit }),
      ...(generation !== undefined && { generation }),
      startHash: madeOf,
      ...(instance.spec.startRequest !== undefined && { startRequest: instance.spec.startRequest }),
    },
  };
}

/** The status of an instance that is refused before it had a place. A pause comes before the next try. */
export function refusedStatus(instance: GpuInstance, ending: Ending, now: number): GpuInstanceStatus {
  const status = endedStatus(instance, ending, now);
  if (endingOf(status)?.rule.next !== 'backOff') return status;
  return { ...status, failures: withFailure(status.failures, { now, upMs: 0, node: undefined }) };
}

/** The status when no program runs any more: the bill is closed and the place given back, in one write. */
export function releasedStatus(instance: GpuInstance, ending: SeenEnding, now: number): GpuInstanceStatus {
  const { claim, podName: _name, podUid: _uid, podIP: _ip, unhealthyGPUs: _gpus, ...rest } = instance.status ?? {};
  const end = meterEnded(ending);
  const bill = closedBill(instance.status ?? {}, end);
  const {
    failures: before,
    preemptions,
    rented: _rented,
    stages,
    usage: _usage,
    silences: _silences,
    devices: _devices,
    ...kept
  } = rest;
  const upMs = Math.max(0, end - (firstRan(stages) ?? end));
  const node = ending.rule.blamesNode ? claim?.node : undefined;
  const avoided = ending.rule.avoidsNode ? claim?.node : undefined;
  const failures =
    ending.rule.next === 'backOff'
      ? withFailure(before, { now: end, upMs, node, avoided })
      : afterGoodStart(before, ending, now);
  return {
    ...kept,
    ...keptRented(instance),
    ...settledEnding(instance),
    ...bill,
    ...(failures && { failures }),
    ...(claim && { recentStarts: withStart(rest.recentStarts, claim.grantedAt) }),
    ...(ending.reason === 'Preempted' && { preemptions: withPreemption(preemptions, { now, upMs }) }),
    stages: { ...stages, stopped: new Date(now).toISOString() },
  };
}

/** A start that its owner ended was good. The nodes where starts failed stay known for a while. */
function afterGoodStart(
  failures: GpuInstanceStatus['failures'],
  ending: SeenEnding,
  now: number,
): GpuInstanceStatus['failures'] {
  return ending.rule.next === 'restart' ? failures : withoutCount(failures, now);
}
