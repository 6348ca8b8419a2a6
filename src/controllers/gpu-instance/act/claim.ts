import { admission, placeOf, type Terms, withinCeilings } from '../../../inventory/admission.ts';
import type { CeilingRefusal } from '../../../inventory/ceilings.ts';
import type { Place, PlaceRequest } from '../../../inventory/grant.ts';
import { requestsOf } from '../../../inventory/nodes/node-view.ts';
import type { Preemption } from '../../../inventory/preempt.ts';
import type { GpuShare } from '../../../inventory/tenant-holdings.ts';
import { ForbiddenError, NotFoundError } from '../../../kube/errors.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { storedOf } from '../../../resources/pod/claim-on-pod.ts';
import type { Ceilings } from '../../../resources/tenants/ceilings.ts';
import type { Ending } from '../decide/endings.ts';
import { diskNameOf } from '../decide/names.ts';
import { forbiddenEnv, forbiddenRuntimeClass, isolationNeeds } from '../decide/refusals/forbidden.ts';
import { missingIsolation, requestOf, withoutDiskNode, withoutPlace } from '../decide/place.ts';
import { quotaRefusal } from '../decide/refusals/quota.ts';
import type { Waiting } from '../decide/status/ready.ts';
import type { Settings } from '../decide/settings.ts';
import { claimOf, createdByOf, endedStatus } from '../decide/transitions.ts';
import { nodesOfVolume } from '../decide/volume-nodes.ts';
import type { WithStored } from './observe.ts';
import type { Run } from './run.ts';
import { type Claimed, claimOnPod, claimWith, findClaimed, mayClaimOnPod, writeClaim } from './write-claim.ts';
import { writeStatus } from './writes.ts';

const TURN: Waiting = { reason: 'Pending', message: 'The instance waits for its turn.' };
const LATER: Waiting = { reason: 'WaitingForCapacity', message: 'Instances that wait longer come first.' };

type ClaimOutcome =
  | Claimed
  /** There is no place yet. */
  | { waiting: Waiting }
  /** There is no place, and waiting would not help. */
  | { refused: Ending };

const DISPLACED = 'An on-demand instance takes the GPUs. This instance starts again when other GPUs are free.';

/**
 * Writes to interruptible instances that they are preempted. Their own runs then give the GPUs back. Their tenants read
 * that, so it names the instance that takes the GPUs by its uid alone, which means something to operators.
 */
async function preempt(run: Run, by: GpuInstance, { place, victims }: Preemption): Promise<ClaimOutcome> {
  const { deps } = run;
  const ending: Ending = { reason: 'Preempted', message: DISPLACED, by: by.metadata.uid };
  for (const { key } of victims) {
    const victim = deps.stores.instances.get(key);
    // One whose claim is being written has no start yet to end. It is found again when it has.
    if (victim?.status?.claim === undefined || victim.status.ending !== undefined) continue;
    await writeStatus(run, storedOf(victim), endedStatus(victim, ending, deps.clock.now()));
  }
  return { waiting: { reason: 'WaitingForCapacity', message: `A place on node ${place.node} is becoming free.` } };
}

function refusalOfQuota({ deps }: Run, instance: GpuInstance, place: Place, settings: Settings): string | undefined {
  const quotas = deps.stores.quotas.by('namespace', instance.metadata.namespace ?? '');
  const facts = deps.inventory.viewOf(place.node)?.facts;
  const resource = facts?.resources.find(({ resourceName }) => resourceName === place.offerClass.resourceName);
  if (quotas.length === 0 || facts === undefined || resource === undefined) return undefined;
  const share = { resource, count: place.offerClass.gpuCount };
  return quotaRefusal(quotas, requestsOf(facts, share, place.diskPersistent ? 0 : settings.diskGb));
}

/** Why no place would do: then none is looked for. */
function forbidden({ deps }: Run, { spec }: GpuInstance, settings: Settings, ceilings: Ceilings): Ending | undefined {
  const poolClasses = [...deps.stores.pools.values()].map((pool) => pool.spec.runtimeClassName);
  return forbiddenEnv(settings) ?? forbiddenRuntimeClass(isolationNeeds(spec, ceilings), poolClasses);
}

/** An instance that waits for its tenant's ceilings must not hold up those that wait for GPUs. */
function waitForTenant(run: Run, instance: GpuInstance, { message, wanted }: CeilingRefusal): ClaimOutcome {
  return waitAside(run, instance, { reason: 'TenantLimit', message }, wanted);
}

function waitAside({ deps, key }: Run, instance: GpuInstance, waiting: Waiting, wanted?: GpuShare): ClaimOutcome {
  deps.line.remove(key);
  deps.tenantLine.add(key, instance, wanted);
  return { waiting };
}

/** The nodes that the disk can be used on; undefined for all. Before the first start there is no volume. */
async function nodesOfDisk({ deps, context }: Run, instance: GpuInstance): Promise<Set<string> | undefined> {
  const { incarnation = 0, diskPersistent } = instance.status ?? {};
  if (incarnation === 0 || diskPersistent !== true) return undefined;
  const { signal } = context;
  try {
    const ref = { namespace: instance.metadata.namespace, name: diskNameOf(instance) };
    const disk = await deps.client.get(PERSISTENT_VOLUME_CLAIMS, ref, { signal });
    if (disk.spec?.volumeName === undefined) return undefined;
    const volume = await deps.client.get(PERSISTENT_VOLUMES, { name: disk.spec.volumeName }, { signal });
    return nodesOfVolume(volume, deps.stores.nodes.values());
  } catch (error) {
    if (!(error instanceof NotFoundError) && !(error instanceof ForbiddenError)) throw error;
    return undefined;
  }
}

/** What became of a claim of an earlier run, which may still be on its way; undefined when a place is to be looked for. */
async function claimUnderWay(run: Run, observed: WithStored, settings: Settings): Promise<ClaimOutcome | undefined> {
  const { inventory, stores } = run.deps;
  const pod = await findClaimed(run, observed);
  if (pod !== undefined) return { instance: observed.stored, pods: [pod] };
  // A pod with this claim may be on its way: no other place is granted beside it.
  const undecided = inventory.undecided(run.key)?.status;
  if (undecided?.claim !== undefined) {
    const persistent = undecided.diskPersistent === true;
    return writeClaim(run, claimWith(run, observed, undecided.claim, { persistent, settings }));
  }
  // The inventory still counts the claim that this run gave back: the instance would not see who waits for its place.
  // The event of that write brings it here again.
  return stores.instances.get(run.key)?.status?.claim === undefined ? undefined : { waiting: TURN };
}

/** Grants a place. Nothing is awaited between the decision and its note in the inventory: no place is granted twice. */
export async function claimPlace(run: Run, observed: WithStored, settings: Settings): Promise<ClaimOutcome> {
  const { deps, key, context } = run;
  const { instance } = observed;
  const { namespace = '' } = instance.metadata;
  const limit = deps.ceilingsOf(namespace);
  const refused = forbidden(run, instance, settings, limit);
  if (refused !== undefined) return { refused };
  const underWay = await claimUnderWay(run, observed, settings);
  if (underWay !== undefined) return underWay;
  const fitting = requestOf(observed, settings, { only: await nodesOfDisk(run, instance), ceilings: limit });
  if (fitting.only?.size === 0) {
    deps.line.remove(key);
    return withoutDiskNode(instance);
  }
  const isLimited = limit.gpus.length > 0 || deps.budgets.isMetered(namespace, createdByOf(instance));
  if (isLimited) await deps.claimReads.of(namespace, context.signal);
  const within = withinCeilings(deps.inventory, { namespace, limit }, fitting);
  if ('overImages' in within) return waitForTenant(run, instance, within.overImages);
  const earlier = deps.line.before(key, instance);
  deps.line.add(key, instance, within.request);
  if (earlier !== undefined) return { waiting: LATER };
  return takeTurn(run, observed, settings, { limit, ...within });
}

/** It is the turn of this instance: what it gets. */
function takeTurn(
  run: Run,
  observed: WithStored,
  settings: Settings,
  { limit, request, without }: { limit: Ceilings; request: PlaceRequest; without: readonly GpuShare[] },
): ClaimOutcome | Promise<ClaimOutcome> {
  const { deps, key } = run;
  const { instance, now } = observed;
  const { namespace = '' } = instance.metadata;
  const terms: Terms<Waiting> = {
    namespace,
    limit,
    preempt: () => deps.line.preempt(key, request, now),
    overBudget: (place) => deps.budgets.refusal(namespace, claimOf(instance, { place }, now)),
  };
  const found = admission(deps.inventory, terms, request);
  if ('overGpus' in found) return waitForTenant(run, instance, found.overGpus);
  if ('overBudget' in found) return waitAside(run, instance, found.overBudget);
  const overQuota = 'refusal' in found ? undefined : refusalOfQuota(run, instance, placeOf(found), settings);
  if (overQuota !== undefined) {
    // An instance that waits for quota must not hold up those that wait for GPUs.
    deps.line.remove(key);
    return { waiting: { reason: 'QuotaExceeded', message: overQuota } };
  }
  if ('place' in found) return take(run, observed, settings, found.place);
  // It waits for a place without holding any GPUs. Others of its tenant may find one. When the tenant gives back some of
  // what the ceilings refuse now, more places serve this instance.
  deps.tenantLine.serve(namespace);
  if (without.length > 0) deps.tenantLine.add(key, instance, without[0]);
  if ('preemption' in found) return preempt(run, instance, found.preemption);
  const isFull = found.refusal === 'NoCapacity';
  const lacks = isFull ? missingIsolation(request, (other) => deps.inventory.grant(other), instance.spec) : undefined;
  return withoutPlace(instance, found.refusal, lacks ?? found.message);
}

function take(run: Run, observed: WithStored, settings: Settings, place: Place): Promise<ClaimOutcome> {
  const { deps, key } = run;
  const { instance, now } = observed;
  const claim = claimOf(instance, { place }, now);
  const persistent = place.diskPersistent;
  deps.inventory.assume(instance, claim, { gb: settings.diskGb, persistent });
  // From here on the instance holds up no other, although the write is still to come.
  deps.line.remove(key);
  const claimed = claimWith(run, observed, claim, { persistent, settings });
  return mayClaimOnPod(run, observed) ? claimOnPod(run, claimed) : writeClaim(run, claimed);
}
