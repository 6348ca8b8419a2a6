import type { Logger } from 'pino';
import { doOthersEnd } from '../../../caches/line-order.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { AlreadyExistsError, ConflictError, isGone } from '../../../kube/errors.ts';
import { newInstanceName, REQUEST_HASH } from '../../../resources/ids.ts';
import { FINALIZER } from '../../../resources/cleanup.ts';
import {
  ANSWERED,
  CONFIRM_BY,
  CREATED_BY,
  GPU_INSTANCES,
  type GpuInstance,
  type GpuInstanceSpec,
  TRACEPARENT,
} from '../../../resources/instances/gpu-instance.ts';
import type { HistoryEntry } from '../../../resources/instance-history.ts';
import { instanceState, isReadyReason } from '../../../resources/instances/instance-state.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { idempotencyConflict, type ObjectNames, otherBody } from '../../interface/idempotency.ts';
import type { ClaimGate } from './claim-gate.ts';
import { type ClaimWaiter, decisionOf, MEANINGS, type WaitResult } from './claim-waiter.ts';
import { type Foreseen, type Foreseer, foreseeRefusal } from './foresee.ts';
import { historiesOf } from './histories.ts';
import { CONFIRM_MS, type PendingRemovals } from './reaper.ts';

/** How long a client waits for the decision of the controller. */
const DECISION_MS = 15_000;
/** The same for a client that queues: its instance is there, and the record says that nothing is decided yet. */
const QUEUE_MS = 2_000;
/** How much later than this replica the controller may learn of a template. */
const TEMPLATE_LAG_MS = 2_000;
/** Every try after the first means that the controller wrote between a read and the delete right after it. */
const WITHDRAW_TRIES = 5;

const RETRY = 'Nothing was rented; try again.';
const RETRY_WITH_KEY = 'Send the same request again to learn the outcome.';

export interface CreateDeps extends Foreseer {
  gate: ClaimGate;
  client: KubeClient;
  waiter: ClaimWaiter;
  idempotentName: ObjectNames;
  removals: PendingRemovals;
  log: Logger;
}

export interface CreateRequest {
  namespace: string;
  spec: GpuInstanceSpec;
  /** The key or the person, for the bill. */
  createdBy: string;
  /** The trace that the start of the instance belongs to. */
  traceparent?: string | undefined;
  idempotency?: { key: string; hash: string } | undefined;
  /** Aborts when the client goes away. */
  signal: AbortSignal;
}

export interface Created {
  outcome: 'granted' | 'queued' | 'refused';
  instance: GpuInstance;
  /** True when an earlier request with the same Idempotency-Key created it. */
  replayed: boolean;
}

async function newInstance({ clock, idempotentName }: CreateDeps, request: CreateRequest): Promise<GpuInstance> {
  const { namespace, spec, createdBy, traceparent, idempotency } = request;
  const name = idempotency ? await idempotentName('i', namespace, idempotency.key) : newInstanceName();
  const annotations: Record<string, string> = idempotency
    ? { [REQUEST_HASH]: idempotency.hash }
    : { [CONFIRM_BY]: new Date(clock.now() + CONFIRM_MS).toISOString() };
  const marks = { [CREATED_BY]: createdBy, ...(traceparent !== undefined && { [TRACEPARENT]: traceparent }) };
  // One that is deleted before any controller saw it must not vanish without a history.
  const finalizers = idempotency && { finalizers: [FINALIZER] };
  return { metadata: { namespace, name, annotations: { ...annotations, ...marks }, ...finalizers }, spec };
}

/**
 * Rents a place: writes the instance, waits for the controller's decision, and removes the instance when it is refused.
 * An instance that queues stays without a place.
 *
 * No instance stays that its client does not know of. With an Idempotency-Key it stays whatever happens to the
 * connection, and a retry finds it. Without one it carries an annotation until it is answered. When the client goes away
 * before, this function deletes the instance; when this process dies before, the reaper of any replica does. The reaper
 * of this replica deletes what this function could not. A process that dies after it has taken the annotation away, and
 * before the client has the answer, leaves the instance in the client's list.
 *
 * An instance that others end for stays all the same: their work would be lost for nothing. The controller writes that
 * before it ends anybody, and the deletion names the version that was seen, so one of the two comes first.
 * @throws ApiError claim_timeout, idempotency_conflict, instance_deleting, too_many_at_once, overloaded; KubeError
 */
export async function createInstance(
  deps: CreateDeps,
  request: CreateRequest,
): Promise<Created | { outcome: 'foreseen'; refusal: Foreseen }> {
  const leave = await deps.gate.enter(request.namespace, { timeoutMs: DECISION_MS, signal: request.signal });
  if (leave === undefined) throw timedOut(RETRY);
  try {
    // An instance that an earlier request with this key created is found even when nothing is free now.
    const isSure = !request.idempotency && request.spec.onNoCapacity === 'Fail';
    const refusal = isSure ? await foreseeRefusal(deps, request.namespace, request.spec) : undefined;
    return refusal === undefined ? await claim(deps, request) : { outcome: 'foreseen', refusal };
  } finally {
    leave();
  }
}

function timedOut(rest: string): ApiError {
  return new ApiError('claim_timeout', `The controller did not decide within ${DECISION_MS / 1000} seconds. ${rest}`, {
    retryAfterSeconds: 5,
  });
}

function deleted(): ApiError {
  return new ApiError('instance_deleting', 'Another request deleted the instance before it was ready.');
}

function isWithoutTemplate(instance: GpuInstance): boolean {
  return instanceState(instance).reason === 'TemplateNotFound';
}

/** The decision of the controller. That it knows no such template counts when it still says so after some time. */
async function decide(deps: CreateDeps, request: CreateRequest, created: GpuInstance): Promise<WaitResult> {
  const { namespace, spec, signal, idempotency } = request;
  const ref = { namespace, name: created.metadata.name, uid: created.metadata.uid ?? '' };
  const timeoutMs = spec.onNoCapacity === 'Queue' ? QUEUE_MS : DECISION_MS;
  const options = { timeoutMs, ...(!idempotency && { signal }) };
  const waited = await deps.waiter.decision(ref, options);
  if (waited.decision !== 'refused' || !waited.instance || !isWithoutTemplate(waited.instance)) return waited;
  const later = { ...options, timeoutMs: TEMPLATE_LAG_MS, isPassing: isWithoutTemplate };
  const after = await deps.waiter.decision(ref, later);
  return after.decision === 'timeout' ? { ...waited, instance: after.instance ?? waited.instance } : after;
}

/** What is known when the controller has decided, or the time for it is over. */
interface Known {
  decision: WaitResult['decision'];
  /** The client takes an instance that has no place yet. */
  queues: boolean;
  /** The request has an Idempotency-Key: the instance stays for a retry. */
  hasKey: boolean;
  hasLeft: boolean;
  replayed: boolean;
  /** The place goes to an instance that has waited longer. */
  isBehind: boolean;
  /** Others end for it: it stays, also when its client has left. */
  isComing: boolean;
}

type End = { do: 'answer' | 'confirm'; outcome: 'granted' | 'queued' } | { do: 'refuse' | 'deleted' | 'timeout' };

/**
 * How a request ends. Where it has no key, the client must be there for an answer, and the instance goes otherwise, unless
 * others end for it.
 */
export function endOf({ decision, queues, hasKey, hasLeft, replayed, isBehind, isComing }: Known): End {
  const outcome = decision === 'timeout' && queues ? 'queued' : decision;
  if ((outcome === 'granted' || outcome === 'queued') && (hasKey || !hasLeft || isComing)) {
    return { do: hasKey ? 'answer' : 'confirm', outcome };
  }
  if (outcome === 'refused') return { do: 'refuse' };
  // After a replay: another request with the same key was refused meanwhile and deleted the instance.
  if (outcome === 'gone') return { do: replayed ? 'refuse' : 'deleted' };
  return { do: isBehind && !hasKey ? 'refuse' : 'timeout' };
}

async function claim(deps: CreateDeps, request: CreateRequest): Promise<Created> {
  const { signal, idempotency, spec } = request;
  const { instance: created, replayed } = await createOrFind(deps, request);
  const hasKey = idempotency !== undefined;
  const isChecked = hasKey && !replayed ? mustBeOnly(deps, created) : undefined;
  const [waited] = await Promise.all([decide(deps, request, created), isChecked]);
  // Only with a key can another request have answered about the same instance.
  const { decision, instance = created } = hasKey ? await shared(deps, waited, replayed) : waited;
  const isBehind = instanceState(instance).reason === 'WaitingForCapacity';
  const isComing = doOthersEnd(instance);
  const known = { decision, queues: spec.onNoCapacity === 'Queue', hasKey, replayed, isBehind, isComing };
  let end = endOf({ ...known, hasLeft: signal.aborted });
  if (end.do === 'answer') {
    const { outcome } = end;
    return { outcome, instance: outcome === 'queued' ? await markAnswered(deps, instance) : instance, replayed };
  }
  if (end.do === 'confirm') {
    const confirmed = await confirm(deps, instance);
    if (confirmed.metadata.deletionTimestamp !== undefined) throw deleted();
    if (!signal.aborted || isComing) return { outcome: end.outcome, instance: confirmed, replayed };
    // The client left meanwhile: confirm() can take a minute with its retries.
    end = endOf({ ...known, hasLeft: true });
  }
  const kept = hasKey ? undefined : await removeUnknown(deps, instance);
  if (kept !== undefined) return { outcome: 'queued', instance: kept, replayed };
  if (end.do === 'refuse') return { outcome: 'refused', instance, replayed };
  if (end.do === 'deleted') throw deleted();
  throw timedOut(hasKey ? RETRY_WITH_KEY : RETRY);
}

/** Marks the instance as the answer of its request: no later decision about it takes the answer back. */
async function markAnswered({ client }: CreateDeps, instance: GpuInstance): Promise<GpuInstance> {
  const { namespace, name, uid, annotations } = instance.metadata;
  if (annotations?.[ANSWERED] !== undefined) return instance;
  const body = { metadata: { uid, annotations: { [ANSWERED]: 'true' } } };
  try {
    const marked = await client.patch(GPU_INSTANCES, { namespace, name }, body, { type: 'merge' });
    if (marked.metadata.deletionTimestamp === undefined) return marked;
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  throw deleted();
}

/** Marks the instance as known to its client. When that fails the outcome is unknown, so the instance is removed. */
async function confirm(deps: CreateDeps, created: GpuInstance): Promise<GpuInstance> {
  const { namespace, name, uid } = created.metadata;
  const body = { metadata: { uid, annotations: { [CONFIRM_BY]: null } } };
  try {
    return await deps.client.patch(GPU_INSTANCES, { namespace, name }, body, { type: 'merge' });
  } catch (error) {
    if (isGone(error)) throw deleted();
    // Where others end for it, the reaper sees to it.
    if (!doOthersEnd(created)) await remove(deps, created);
    throw error;
  }
}

/** Removes an instance that no client knows of. Where others end for it by now, it is kept instead, and returned. */
async function removeUnknown(deps: CreateDeps, unknown: GpuInstance): Promise<GpuInstance | undefined> {
  let instance = unknown;
  for (let tries = 0; tries < WITHDRAW_TRIES; tries += 1) {
    if (doOthersEnd(instance)) return confirm(deps, instance);
    if (await remove(deps, instance, instance.metadata.resourceVersion)) return undefined;
    const now = await findObject(deps.client, GPU_INSTANCES, instance.metadata);
    if (now === undefined || now.metadata.uid !== instance.metadata.uid) return undefined;
    instance = now;
  }
  await remove(deps, instance);
  return undefined;
}

/** The decision for a request with a key. What was rented before waits for a place, once a backup brought it back. */
async function shared(deps: CreateDeps, waited: WaitResult, replayed: boolean): Promise<WaitResult> {
  const { decision, instance } = waited;
  if (decision === 'refused') return withdraw(deps, waited, replayed);
  const isOpen = decision === 'timeout' && replayed;
  if (!isOpen || instance === undefined || !(await wasRented(deps.client, instance))) return waited;
  return { decision: 'queued', instance };
}

/**
 * Removes an instance that the cache shows as refused, unless it has changed: another replica, whose cache is ahead, may
 * have answered the same key with a grant. One that an earlier request found was perhaps rented before, and a backup
 * brought it back without its status, or an earlier release did not mark it. Returns the decision that holds.
 * @throws ApiError claim_timeout when the instance changes each time it is read
 */
async function withdraw(deps: CreateDeps, refused: WaitResult, replayed: boolean): Promise<WaitResult> {
  let { instance } = refused;
  if (replayed && instance && (await wasRented(deps.client, instance))) return { decision: 'queued', instance };
  for (let tries = 0; tries < WITHDRAW_TRIES && instance !== undefined; tries += 1) {
    if (await remove(deps, instance, instance.metadata.resourceVersion)) return refused;
    const now = await findObject(deps.client, GPU_INSTANCES, instance.metadata);
    if (now?.metadata.uid !== instance.metadata.uid) return refused;
    instance = now;
    const decision = instance && decisionOf(instance);
    if (decision === 'granted' || decision === 'queued') return { decision, instance };
    if (decision === 'gone') return refused;
  }
  throw timedOut(RETRY_WITH_KEY);
}

/** Removes this instance; with a version, only in that version. False when it has changed since. */
async function remove(deps: CreateDeps, { metadata }: GpuInstance, resourceVersion?: string): Promise<boolean> {
  const { client, removals, log } = deps;
  const { namespace, name, uid = '' } = metadata;
  try {
    await client.delete(GPU_INSTANCES, { namespace, name }, { uid, ...(resourceVersion && { resourceVersion }) });
  } catch (error) {
    if (!(error instanceof ConflictError)) {
      // An instance with an Idempotency-Key stays for its retry.
      if (metadata.annotations?.[REQUEST_HASH] === undefined) removals.add({ namespace, name, uid });
      throw error;
    }
    // A conflict about the uid alone: another object has this name now, so this one is gone.
    if (resourceVersion !== undefined) return false;
  }
  log.debug({ namespace, instance: name }, 'Removed an instance that was not rented');
  return true;
}

/**
 * Whether the client of an instance had a 201, as one entry of its history says. Each start had a place; before the first,
 * the reason says what it was told.
 */
function tellsOfRental({ reason, start }: HistoryEntry, queues: boolean): boolean {
  if (start > 0 || reason === 'PlaceComing') return true;
  const meaning = isReadyReason(reason) ? MEANINGS[reason] : 'open';
  return queues && (meaning === 'waits' || meaning === 'noRoom' || meaning === 'off');
}

/** Whether an instance of this name was rented, as its history says. `besides`: the uid of one that does not count. */
async function wasRented(client: KubeClient, { metadata, spec }: GpuInstance, besides?: string): Promise<boolean> {
  const { namespace = '', name } = metadata;
  const queues = spec.onNoCapacity === 'Queue';
  for await (const { metadata: own, spec: history } of historiesOf(client, { namespace, id: name })) {
    if (history.instanceUid === besides) continue;
    const isMarked = own.annotations?.[ANSWERED] !== undefined;
    if (isMarked || history.entries.some((entry) => tellsOfRental(entry, queues))) return true;
  }
  return false;
}

function over(): ApiError {
  return idempotencyConflict('The instance of this Idempotency-Key was deleted. To rent another, use a new key.');
}

/** @throws ApiError idempotency_conflict when the instance of this name was rented, and is gone */
async function mustBeFirst(client: KubeClient, wanted: GpuInstance): Promise<void> {
  if ((await wasRented(client, wanted)) && !(await findObject(client, GPU_INSTANCES, wanted.metadata))) throw over();
}

/**
 * The history of an instance is there before the instance goes. So one that came and went between the look at both and
 * the creation has its own by now.
 * @throws ApiError idempotency_conflict when there was one; what was created is removed
 */
async function mustBeOnly(deps: CreateDeps, created: GpuInstance): Promise<void> {
  if (!(await wasRented(deps.client, created, created.metadata.uid ?? ''))) return;
  await remove(deps, created);
  throw over();
}

/** What an earlier request with this Idempotency-Key rented; undefined when nothing of it is there. */
export async function findAnswered(deps: CreateDeps, request: CreateRequest): Promise<Created | undefined> {
  const { idempotency } = request;
  if (idempotency === undefined) return undefined;
  const { metadata } = await newInstance(deps, request);
  const instance = await findObject(deps.client, GPU_INSTANCES, metadata);
  if (instance?.metadata.annotations?.[REQUEST_HASH] !== idempotency.hash || instance === undefined) return undefined;
  const outcome = decisionOf(instance);
  if (outcome === 'granted') return { outcome, instance, replayed: true };
  return outcome === 'queued' ? { outcome, instance: await markAnswered(deps, instance), replayed: true } : undefined;
}

async function createOrFind(deps: CreateDeps, request: CreateRequest) {
  const { client, clock, waiter } = deps;
  const wanted = await newInstance(deps, request);
  const { namespace, name } = wanted.metadata;
  const end = clock.monotonic() + DECISION_MS;
  const find = (): Promise<GpuInstance | undefined> => findObject(client, GPU_INSTANCES, { namespace, name });
  for (;;) {
    // The instance first: when that is gone, its history is there.
    let found = request.idempotency && (await find());
    if (found === undefined) {
      if (request.idempotency) await mustBeFirst(client, wanted);
      try {
        return { instance: await client.create(GPU_INSTANCES, wanted), replayed: false };
      } catch (error) {
        if (!(error instanceof AlreadyExistsError)) throw error;
      }
      found = await find();
      if (found === undefined) continue;
    }
    if (found.metadata.annotations?.[REQUEST_HASH] !== request.idempotency?.hash) throw otherBody();
    if (found.metadata.deletionTimestamp === undefined) return { instance: found, replayed: true };
    // An earlier request with this key was refused, or its instance was deleted: it is still being removed.
    const timeoutMs = Math.max(0, end - clock.monotonic());
    if (timeoutMs === 0 || !(await waiter.removal({ namespace, name }, { timeoutMs }))) {
      throw idempotencyConflict('The instance of this Idempotency-Key is being deleted. Use a new key.');
    }
  }
}
