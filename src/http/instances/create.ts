import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { AlreadyExistsError, ConflictError } from '../../kube/errors.ts';
import { GPU_INSTANCES, type GpuInstance, type GpuInstanceSpec } from '../../resources/gpu-instance.ts';
import { instanceState } from '../../resources/instance-state.ts';
import { idempotentName, newInstanceName } from '../../resources/ids.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { ApiError } from '../errors/api-error.ts';
import { live } from '../tenant.ts';
import type { Abandoned } from './abandoned.ts';
import { REQUEST_HASH } from './idempotency.ts';
import { CONFIRM_BY } from '../../resources/gpu-instance.ts';
import type { ClaimGate } from './claim-gate.ts';
import { foreseeRefusal } from './foresee.ts';
import { type ClaimWaiter, decisionOf, type Waited } from './claim-waiter.ts';
import { idempotencyConflict } from './idempotency.ts';

/** How long a client waits for the decision of the controller. */
const DECISION_MS = 15_000;
const CONFIRM_MS = 30_000;
/** Each further one means that the controller wrote between a read and a delete that follows at once. */
const WITHDRAW_TRIES = 5;

export interface CreateDeps {
  offers: Pick<Inventory, 'grant' | 'preempt'>;
  gate: ClaimGate;
  client: KubeClient;
  waiter: ClaimWaiter;
  abandoned: Abandoned;
  clock: Clock;
  log: Logger;
}

export interface CreateRequest {
  namespace: string;
  spec: GpuInstanceSpec;
  idempotency?: { key: string; hash: string } | undefined;
  /** Aborts when the client goes away. */
  signal: AbortSignal;
}

export interface Created {
  outcome: 'granted' | 'refused';
  /** Absent when the refusal was clear before anything was written. */
  instance?: GpuInstance;
  /** True when an earlier request with the same Idempotency-Key made it. */
  replayed: boolean;
}

function newInstance(request: CreateRequest, now: number): GpuInstance {
  const { namespace, spec, idempotency } = request;
  const name = idempotency ? idempotentName('i', namespace, idempotency.key) : newInstanceName();
  const annotations: Record<string, string> = idempotency
    ? { [REQUEST_HASH]: idempotency.hash }
    : { [CONFIRM_BY]: new Date(now + CONFIRM_MS).toISOString() };
  return { metadata: { namespace, name, annotations }, spec };
}

/**
 * Rents a place: writes the resource, waits for the controller's decision, and removes what was refused.
 *
 * Nothing is rented that nobody knows of. With an Idempotency-Key the instance stays whatever happens to the connection,
 * and a retry finds it. Without one it carries an annotation until the moment of the answer; when the client goes away
 * before, it is deleted here, and when this process dies before, by the reaper of any replica. What cannot be deleted
 * here is left to the reaper of this one.
 * @throws ApiError claim_timeout, idempotency_conflict; KubeError
 */
export async function createInstance(deps: CreateDeps, request: CreateRequest): Promise<Created> {
  const leave = await deps.gate.enter({ timeoutMs: DECISION_MS, signal: request.signal });
  if (leave === undefined) throw timedOut('Nothing was rented; try again.');
  try {
    // What a key made before is returned even when all is rented out since.
    const hopeless = !request.idempotency && (await foreseeRefusal(deps.offers, request.spec, deps.clock));
    return hopeless ? { outcome: 'refused', replayed: false } : await claim(deps, request);
  } finally {
    leave();
  }
}

function timedOut(rest: string): ApiError {
  return new ApiError('claim_timeout', `No controller decided within ${DECISION_MS / 1000} seconds. ${rest}`, {
    headers: { 'retry-after': '5' },
  });
}

function deleted(): ApiError {
  return new ApiError('instance_deleting', 'Somebody deleted the instance before it was ready.');
}

async function claim(deps: CreateDeps, request: CreateRequest): Promise<Created> {
  const { signal, idempotency } = request;
  const { instance: made, replayed } = await createOrFind(deps, request);
  const ref = { namespace: request.namespace, name: made.metadata.name, uid: made.metadata.uid ?? '' };
  const options = { timeoutMs: DECISION_MS, ...(!idempotency && { signal }) };
  const waited = await deps.waiter.decision(ref, options);
  // Without a key nobody else can have had an answer about it.
  const isShared = waited.decision === 'refused' && idempotency !== undefined;
  const { decision, instance = made } = isShared ? await withdraw(deps, waited) : waited;
  if (decision === 'granted' && idempotency) return { outcome: 'granted', instance, replayed };
  if (decision === 'granted' && !signal.aborted) {
    const confirmed = await confirm(deps, made);
    if (confirmed.metadata.deletionTimestamp !== undefined) throw deleted();
    // That call may have been repeated for a minute.
    if (!signal.aborted) return { outcome: 'granted', instance: confirmed, replayed };
  }
  if (!idempotency) await remove(deps, made);
  // A request with the same key was refused meanwhile and took the instance away.
  if (decision === 'refused' || (decision === 'gone' && replayed)) return { outcome: 'refused', instance, replayed };
  if (decision === 'gone') throw deleted();
  // Somebody who waits longer gets the next place: for a client that does not wait that is a no.
  if (!idempotency && instanceState(instance).reason === 'WaitingForCapacity') {
    return { outcome: 'refused', instance, replayed };
  }
  throw timedOut(idempotency ? 'Send the same request again to learn the outcome.' : 'Nothing was rented; try again.');
}

/** Marks the instance as known to its client. When that fails nobody can tell, so the instance goes. */
async function confirm(deps: CreateDeps, made: GpuInstance): Promise<GpuInstance> {
  const { namespace, name, uid } = made.metadata;
  const body = { metadata: { uid, annotations: { [CONFIRM_BY]: null } } };
  try {
    return await deps.client.patch(GPU_INSTANCES, { namespace, name }, body, { type: 'merge' });
  } catch (error) {
    await remove(deps, made);
    throw error;
  }
}

/**
 * Removes an instance that the cache shows as refused, unless it is not any more: another replica, whose cache is ahead,
 * may have answered the same key with a grant since. The decision that holds then.
 * @throws ApiError claim_timeout when it changes each time it is read
 */
async function withdraw(deps: CreateDeps, refused: Waited): Promise<Waited> {
  let { instance } = refused;
  for (let tries = 0; tries < WITHDRAW_TRIES && instance !== undefined; tries += 1) {
    if (await remove(deps, instance, instance.metadata.resourceVersion)) return refused;
    const now = await live(deps.client, GPU_INSTANCES, instance.metadata);
    if (now?.metadata.uid !== instance.metadata.uid) return refused;
    instance = now;
    const decision = instance && decisionOf(instance);
    if (decision === 'granted') return { decision, instance };
    if (decision === 'gone') return refused;
  }
  throw timedOut('Send the same request again to learn the outcome.');
}

/** Removes this incarnation; given a version, only as it was then. False when it has changed since. */
async function remove(deps: CreateDeps, { metadata }: GpuInstance, resourceVersion?: string): Promise<boolean> {
  const { client, abandoned, log } = deps;
  const { namespace, name, uid = '' } = metadata;
  try {
    await client.delete(GPU_INSTANCES, { namespace, name }, { uid, ...(resourceVersion && { resourceVersion }) });
  } catch (error) {
    if (!(error instanceof ConflictError)) {
      // One with an Idempotency-Key waits for its retry.
      if (metadata.annotations?.[REQUEST_HASH] === undefined) abandoned.add({ namespace, name, uid });
      throw error;
    }
    // With the uid alone: another object of this name took its place, so ours is gone.
    if (resourceVersion !== undefined) return false;
  }
  log.debug({ namespace, instance: name }, 'An instance that was not rented is removed');
  return true;
}

async function createOrFind(deps: CreateDeps, request: CreateRequest) {
  const { client, clock, waiter } = deps;
  const wanted = newInstance(request, clock.now());
  const { namespace, name } = wanted.metadata;
  const end = clock.monotonic() + DECISION_MS;
  for (;;) {
    try {
      return { instance: await client.create(GPU_INSTANCES, wanted), replayed: false };
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
    }
    const found = await live(client, GPU_INSTANCES, { namespace, name });
    if (found === undefined) continue;
    if (found.metadata.annotations?.[REQUEST_HASH] !== request.idempotency?.hash) {
      throw idempotencyConflict('This Idempotency-Key came with another body before. Use a new key.');
    }
    if (found.metadata.deletionTimestamp === undefined) return { instance: found, replayed: true };
    // What an earlier try with this key made was refused or deleted and is on its way out.
    const timeoutMs = Math.max(0, end - clock.monotonic());
    if (timeoutMs === 0 || !(await waiter.removal({ namespace, name }, { timeoutMs }))) {
      throw idempotencyConflict('The instance made with this Idempotency-Key is being deleted. Use a new key.');
    }
  }
}
