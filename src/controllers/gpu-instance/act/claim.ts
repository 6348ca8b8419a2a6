import {
  admission,
  overCeilings,
  placeOf,
  type Terms,
  withinCeilings,
  withinOffers,
} from '../../../inventory/admission.ts';
import type { Amounts } from '../../../inventory/amounts.ts';
import { diskRefusal } from '../../../inventory/ceilings.ts';
import { gpuShareOf, type Place, type PlaceRequest, reservedOf } from '../../../inventory/grant.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import { requestsOf, takesOf } from '../../../inventory/nodes/node-view.ts';
import { whyOpen } from '../../../inventory/network/words.ts';
import type { Preemption } from '../../../inventory/preempt.ts';
import type { OfferClass } from '../../../inventory/offers.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { ForbiddenError, NotFoundError } from '../../../kube/errors.ts';
import { keyOf, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../../kube/types.ts';
import { sameJson } from '../../../lib/json.ts';
import type { Claim, GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { storedOf } from '../../../resources/pod/claim-on-pod.ts';
import { diskNameOf } from '../../../resources/pod/disk.ts';
import type { Ceilings } from '../../../resources/tenants/ceilings.ts';
import type { TenantLimitSpec } from '../../../resources/tenants/tenant-limit.ts';
import type { Ending } from '../decide/endings.ts';
import { lossOf } from '../decide/lost-disk.ts';
import {
  forbiddenEnv,
  forbiddenRoot,
  forbiddenNamespace,
  forbiddenRuntimeClass,
  isolationNeeds,
} from '../decide/refusals/forbidden.ts';
import { mayPoolCome, missingIsolation, requestOf, withoutDiskNode, withoutPlace } from '../decide/place.ts';
import { quotaRefusal } from '../decide/refusals/quota.ts';
import type { Waiting } from '../decide/status/ready.ts';
import type { Observed } from '../decide/observed.ts';
import { haveOthersEnded } from '../decide/preempting.ts';
import { isOver } from '../decide/pod/pod-facts.ts';
import { offeredOf } from '../decide/rented.ts';
import { isPlaceComing } from '../../../caches/line-order.ts';
import type { BudgetRefusal } from '../../budgets/budgets.ts';
import { statusOf } from '../decide/status/status.ts';
import type { Settings } from '../decide/settings.ts';
import { claimOf, endedStatus, payersOf } from '../decide/transitions.ts';
import { nodesOfVolume } from '../decide/volume-nodes.ts';
import { waitingSince } from '../decide/waiting-since.ts';
import type { WithStored } from './observe.ts';
import { amountsOf, disksOf, gpusOf } from '../coming-places.ts';
import type { OverMeans, TenantLine } from '../tenant-line.ts';
import { leaveLines, type Run } from './run.ts';
import { tryStart } from './try-start.ts';
import { type Claimed, claimOnPod, claimWith, findClaimed, mayClaimOnPod, writeClaim } from './write-claim.ts';
import { writeStatus } from './writes.ts';

const TURN: Waiting = { reason: 'Pending', message: 'The instance waits for its turn.' };
const LATER: Waiting = { reason: 'WaitingForCapacity', message: 'Instances that wait longer come first.' };

interface Waits {
  waiting: Waiting;
  stored?: GpuInstance;
  offered?: Observed['offered'];
  reserved?: Observed['reserved'];
  othersEnd?: boolean;
  until?: number;
}

type ClaimOutcome =
  | Claimed
  /**
   * There is no place yet. `stored`: the instance as the API server has it, where this run wrote to it. `offered` and
   * `reserved`: what becomes free for it. `until`: when to look again although nothing changes, milliseconds since the
   * epoch.
   */
  | Waits
  /** There is no place, and waiting would not help. */
  | { refused: Ending };

/** Each try of a start that others have to make room for takes a call: the line may have changed each time. */
const MOST_TRIES = 4;

const DISPLACED = 'An on-demand instance takes the GPUs. This instance starts again when other GPUs are free.';

function coming(node: string): Waiting {
  const message = `A place on node ${node} is reserved for this instance and becoming free.`;
  return { reason: 'PlaceComing', message };
}

/**
 * Writes to interruptible instances that they are preempted. Their own runs then give the GPUs back. Their tenants read
 * that, so it names the instance that takes the GPUs by its uid alone, which means something to operators. The instance
 * itself says first that a place is reserved for it: from then on nobody takes it for refused.
 */
async function preempt(run: Run, observed: WithStored, { place, victims }: Preemption): Promise<ClaimOutcome> {
  const { deps } = run;
  const waiting = coming(place.node);
  // Others give way for this place: its price is the one that counts.
  const offered = offeredOf(place.offerClass, observed.instance.spec.type);
  const reserved = reservedOf(place);
  if (victims.length === 0) return { waiting, offered, reserved };
  const status = statusOf({ ...observed, offered, reserved, othersEnd: true }, deps.config.ssh, waiting);
  const stored = await writeStatus(run, observed.stored, status);
  deps.line.telling(run.key);
  const ending: Ending = { reason: 'Preempted', message: DISPLACED, by: stored.metadata.uid };
  for (const { key } of victims) {
    // While it was written, one ahead may have got the node, and this one another place.
    if (deps.line.reserved(run.key)?.node !== place.node) break;
    const victim = deps.stores.instances.get(key);
    // One whose claim is being written has no start yet to end. It is found again when it has.
    if (victim?.status?.claim === undefined || victim.status.ending !== undefined) continue;
    const { namespace } = victim.metadata;
    const pod = deps.stores.pods.get(keyOf({ namespace, name: victim.status.podName ?? '' }));
    // Its program has ended by itself. It gives its GPUs back for that, and runs no second time.
    if (pod !== undefined && isOver(victim, pod)) continue;
    await writeStatus(run, storedOf(victim), endedStatus(victim, ending, deps.clock.now()));
  }
  return { waiting, stored, offered, reserved, othersEnd: true };
}

/** By `amountsOf`, what a place takes of its node; undefined when the node is gone. */
function amountsFor(
  { deps }: Run,
  { node, offerClass, diskPersistent }: Place,
  settings: Settings,
  amountsOf: typeof requestsOf,
): Amounts | undefined {
  const facts = deps.inventory.viewOf(node)?.facts;
  const resource = facts?.resources.find(({ resourceName }) => resourceName === offerClass.resourceName);
  if (facts === undefined || resource === undefined) return undefined;
  return amountsOf(facts, { resource, count: offerClass.gpuCount }, diskPersistent ? 0 : settings.diskGb);
}

/** What the budgets and quotas of the tenant leave of the offers that would serve an instance. */
interface Means {
  request: PlaceRequest;
  over: readonly OverMeans[];
  /** Why the first of those is none. */
  why?: string | undefined;
}

/** What speaks against an offer, whatever its node. */
type RefusalOfOffer = (offerClass: OfferClass) => { over: OverMeans; message: string } | undefined;

function refusalOfOffers(run: Run, { instance, now }: Observed): RefusalOfOffer {
  const { deps, key } = run;
  const { namespace = '' } = instance.metadata;
  const refuses = deps.budgets.refusals(namespace, payersOf(instance), key);
  const quotas = deps.stores.quotas.by('namespace', namespace);
  const comes = amountsOf(deps, namespace, key);
  return (offerClass) => {
    const { id: offer, resourceName, gpuCount } = offerClass;
    const node = offerClass.members[0]?.node ?? '';
    const claim = claimOf(instance, { place: { offerClass, node, diskGbMax: 0, diskPersistent: false } }, now);
    const refused = refuses(claim);
    if (refused !== undefined) return { over: { offer, claim, stop: refused.stop }, message: refused.waiting.message };
    // What else a pod takes depends on its node.
    const amounts = { [resourceName]: gpuCount };
    const message = quotaRefusal(quotas, amounts, comes);
    return message === undefined ? undefined : { over: { offer, amounts }, message };
  };
}

/**
 * The request without the offers that a budget or a quota has no room for. Who may have no disk that lasts waits for one,
 * and is not sent where its files are lost.
 */
function withinMeans(run: Run, observed: Observed, request: PlaceRequest, isMetered: boolean): Means {
  const { stores, inventory } = run.deps;
  const hasQuota = stores.quotas.by('namespace', observed.instance.metadata.namespace ?? '').length > 0;
  if (!isMetered && !hasQuota) return { request, over: [] };
  const { request: left, refused } = withinOffers(inventory, request, refusalOfOffers(run, observed));
  const over = refused.map((one) => one.over);
  return { request: left, over, ...(left !== request && { why: refused[0]?.message }) };
}

/** An instance that waits for quota. */
function refusalOfQuota(run: Run, asking: Asking, place: Place, settings: Settings): Waits | undefined {
  const { namespace = '' } = asking.instance.metadata;
  const quotas = run.deps.stores.quotas.by('namespace', namespace);
  const amounts = quotas.length === 0 ? undefined : amountsFor(run, place, settings, requestsOf);
  const message = amounts && quotaRefusal(quotas, amounts, amountsOf(run.deps, namespace, run.key));
  if (amounts === undefined || message === undefined) return undefined;
  const over = [{ offer: place.offerClass.id, amounts }, ...besides(asking, place)];
  return waitAside(run, { reason: 'QuotaExceeded', message }, { ...asking, over });
}

/** What is refused of other offers than that of a place. */
function besides({ over = [] }: Asking, { offerClass }: Place): OverMeans[] {
  return over.filter(({ offer }) => offer !== offerClass.id);
}

/** An instance that waits for room for the disk that a start in this place would make. One that is there stays in use. */
function refusalOfDisk(
  run: Run,
  asking: Asking,
  place: Place,
  { limit, disk, gb }: { limit: TenantLimitSpec; disk: Observed['disk']; gb: number },
): Waits | undefined {
  if (limit.diskGb === undefined || !place.diskPersistent || disk !== undefined) return undefined;
  const { namespace = '' } = asking.instance.metadata;
  const refused = diskRefusal(limit, disksOf(run.deps, namespace, run.key), { namespace, gb });
  const over = [{ offer: place.offerClass.id, diskGb: gb }, ...besides(asking, place)];
  return refused && waitForTenant(run, refused.message, { ...asking, over });
}

/** Why no place would do: then none is looked for. */
function forbidden({ deps }: Run, instance: GpuInstance, settings: Settings, ceilings: Ceilings): Ending | undefined {
  const { metadata, spec } = instance;
  const poolClasses = [...deps.stores.pools.values()].map((pool) => pool.spec.runtimeClassName);
  return (
    forbiddenNamespace(metadata.namespace ?? '', deps.config.namespace) ??
    forbiddenEnv(settings) ??
    forbiddenRoot(spec, deps.stores.namespaces.get(metadata.namespace ?? '')) ??
    (mayPoolCome(instance, poolClasses)
      ? undefined
      : forbiddenRuntimeClass(isolationNeeds(spec, ceilings), poolClasses))
  );
}

type TenantWaiter = Parameters<TenantLine['add']>[1];

/**
 * An instance as it stands in line, and what it asks for there, whatever its tenant has room for; with what there is no
 * room for.
 */
type Asking = Pick<TenantWaiter, 'instance' | 'request' | 'gpus' | 'over'>;

/**
 * An instance that waits for room of its tenant must not hold up those that wait for GPUs. Nor must the others of its tenant
 * that would be refused for the same: one turn after the other, a thousand of them would hold up everybody for a minute.
 */
function waitAside({ deps, key }: Run, waiting: Waiting, waiter: TenantWaiter): Waits {
  for (const { key: other, ...peer } of deps.line.peersOf(key)) {
    if (!isRefusedWith(peer, waiter)) continue;
    deps.line.remove(other);
    const request = { ...peer.request, without: undefined };
    deps.tenantLine.addUnseen(other, { ...waiter, instance: peer.instance, request });
  }
  deps.line.remove(key);
  deps.tenantLine.add(key, waiter);
  return { waiting };
}

/** Whether another of the tenant that the same offers serve is refused for what this one is. */
function isRefusedWith({ instance, request }: Asking, { gpus, over = [], unbilled, ...waiter }: TenantWaiter): boolean {
  // Each has a time of its own at which it is looked at again.
  if (unbilled !== undefined) return false;
  const isOfBudget = over.some((one) => 'claim' in one);
  if (isOfBudget && !sameJson(payersOf(instance), payersOf(waiter.instance))) return false;
  const isOfSize = over.some((one) => !('claim' in one));
  if (isOfSize && request.diskGb < waiter.request.diskGb) return false;
  return gpus !== undefined || over.length > 0;
}

function waitForTenant(run: Run, message: string, waiter: TenantWaiter): Waits {
  return waitAside(run, { reason: 'TenantLimit', message }, waiter);
}

/**
 * When the tenant has room for some of what is refused now, more places serve an instance of the line that asks for what is
 * left.
 */
function waitForMore({ deps, key }: Run, asking: Asking, { without, withoutOffers }: PlaceRequest): void {
  if (without !== undefined || withoutOffers !== undefined) deps.tenantLine.add(key, asking);
}

interface OverBudget extends BudgetRefusal {
  claim: Claim;
  place: Place;
}

/**
 * A new leader still reads what the tenant has spent. An instance that others have ended for keeps its place meanwhile,
 * and holds up nobody.
 */
function waitForRecords(
  run: Run,
  asking: Asking,
  settings: Settings,
  { waiting, claim, stop, place }: OverBudget,
): Waits | undefined {
  const { deps, key } = run;
  const takes =
    waiting.reason === 'Pending' && isPlaceComing(asking.instance)
      ? amountsFor(run, place, settings, takesOf)
      : undefined;
  if (takes === undefined) return undefined;
  deps.line.hold(key, { place, takes });
  deps.tenantLine.add(key, { ...asking, over: [{ offer: place.offerClass.id, claim, stop }] });
  return { waiting: coming(place.node), reserved: reservedOf(place) };
}

/** An instance that waits until the operator closes its namespace must not hold up those that wait for GPUs. */
function waitForPolicy(run: Run, namespace: string): Waits | undefined {
  const { networkPolicies } = run.deps;
  const why = networkPolicies && whyOpen(namespace, networkPolicies.by('namespace', namespace));
  if (why === undefined) return undefined;
  leaveLines(run);
  return { waiting: { reason: 'NetworkOpen', message: why } };
}

/** Whether the tenant has held so much for nothing that this place must wait: nobody's work ends for it, either. */
function refusalOfUnbilled(run: Run, asking: Asking, { offerClass }: Place): ClaimOutcome | undefined {
  const { namespace = '' } = asking.instance.metadata;
  const holds = supplyFor(run).heldBy(namespace);
  const refused = run.deps.unbilled.refusal(namespace, offerClass.gpuCount, holds);
  if (refused === undefined) return undefined;
  const { message, until } = refused;
  return { ...waitForTenant(run, message, { ...asking, unbilled: gpuShareOf(offerClass) }), until };
}

const EARLIER: Waiting = {
  reason: 'Pending',
  message: 'The disk of an earlier instance of this name is being deleted.',
};

/** The nodes that the disk can be used on, undefined for all; or why there is no start without it. */
async function nodesOfDisk(
  { deps, context }: Run,
  { instance, disk: seen }: WithStored,
): Promise<{ only: Set<string> | undefined } | { waiting: Waiting } | { refused: Ending }> {
  const { incarnation = 0, diskPersistent } = instance.status ?? {};
  const loss = lossOf(instance);
  // Before the first start there is no volume, unless the disk is older than the instance.
  const isNew = incarnation === 0 || diskPersistent !== true;
  const ref = { namespace: instance.metadata.namespace, name: diskNameOf(instance) };
  if (isNew && seen === undefined && loss === undefined && deps.stores.disks.get(keyOf(ref)) === undefined) {
    return { only: undefined };
  }
  const { signal } = context;
  const disk = await findObject(deps.client, PERSISTENT_VOLUME_CLAIMS, ref, { signal });
  if (disk === undefined) return loss === undefined ? { only: undefined } : { refused: loss };
  if (disk.metadata.deletionTimestamp !== undefined)
    return loss === undefined ? { waiting: EARLIER } : { refused: loss };
  if (disk.spec?.volumeName === undefined) return { only: undefined };
  try {
    const volume = await deps.client.get(PERSISTENT_VOLUMES, { name: disk.spec.volumeName }, { signal });
    return { only: nodesOfVolume(volume, deps.stores.nodes.values()) };
  } catch (error) {
    if (!(error instanceof NotFoundError) && !(error instanceof ForbiddenError)) throw error;
    return { only: undefined };
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

/** What there is for an instance of the line. The place that is reserved for it is none that its tenant holds beside it. */
function supplyFor(run: Run): Pick<Inventory, 'grant' | 'sharesFor' | 'heldBy'> {
  const { inventory, line } = run.deps;
  return {
    grant: (wanted) => line.grant(run.key, wanted),
    sharesFor: (wanted) => inventory.sharesFor(wanted),
    heldBy: (tenant) => gpusOf(run.deps, tenant, run.key),
  };
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
  const open = waitForPolicy(run, namespace);
  if (open !== undefined) return open;
  const mounts = await nodesOfDisk(run, observed);
  if (!('only' in mounts)) {
    leaveLines(run);
    return mounts;
  }
  const fitting = requestOf(observed, settings, { only: mounts.only, ceilings: limit });
  if (fitting.only?.size === 0) {
    leaveLines(run);
    return withoutDiskNode(instance);
  }
  const isMetered = deps.budgets.isMetered(namespace, payersOf(instance));
  const isLimited = isMetered || limit.gpus.length > 0 || limit.diskGb !== undefined;
  if (isLimited) await deps.claimReads.of(namespace, context.signal);
  const within = withinCeilings(supplyFor(run), { namespace, limit }, fitting);
  // The first look at an instance comes before its status has the time.
  const inLine = { ...instance, status: { ...instance.status, waitingSince: waitingSince(observed) } };
  if ('overImages' in within)
    return waitForTenant(run, within.overImages.message, { instance: inLine, request: fitting });
  const { over, ...means } = withinMeans(run, observed, within.request, isMetered);
  const asking: Asking = {
    instance: inLine,
    request: fitting,
    ...(within.without.length > 0 && { gpus: within.without }),
    ...(over.length > 0 && { over }),
  };
  deps.tenantLine.looked(key);
  deps.line.add(key, inLine, means.request);
  // Those of its tenant that have waited longer come first where there is room by now, also where a limit is no more.
  deps.tenantLine.serve(namespace, inLine);
  deps.budgets.serve(namespace, inLine);
  let tried: Place | undefined;
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    if (deps.line.before(key, inLine) !== undefined) break;
    const outcome = await takeTurn(run, observed, settings, { limit, asking, ...means });
    if (!('preemption' in outcome)) return outcome;
    const { place, victims } = outcome.preemption;
    if (victims.length === 0 || isSamePlace(place, tried)) return preempt(run, observed, outcome.preemption);
    // Nobody ends for a start that is refused. The line goes on meanwhile, so another look at it follows.
    const claim = claimOf(instance, { place }, observed.now);
    const ending = await tryStart(run, claimWith(run, observed, claim, { persistent: place.diskPersistent, settings }));
    if (ending !== undefined) return { refused: ending };
    tried = place;
  }
  waitForMore(run, asking, means.request);
  const reserved = deps.line.reserved(key);
  return reserved === undefined ? { waiting: LATER } : { waiting: coming(reserved.node), reserved };
}

function isSamePlace(place: Place, other: Place | undefined): boolean {
  return place.node === other?.node && place.offerClass.id === other.offerClass.id;
}

/**
 * A free place of GPUs that are those of the offer that the owner named, and cost no more. A start that waits takes it, so
 * nobody may end for a first look that asks for the one offer.
 */
function freeElsewhere(
  { offered, instance }: Observed,
  supply: ReturnType<typeof supplyFor>,
  { terms, request }: { terms: Terms<OverBudget>; request: PlaceRequest },
) {
  if (offered === undefined || request.rented !== undefined || offered.gpus.offerId !== instance.spec.offerId)
    return undefined;
  const { gpus: rented, pricePerHour: perHour, currency } = offered;
  const wider = { ...request, rented, maxPrice: request.maxPrice ?? { perHour, currency } };
  const found = admission(supply, { ...terms, preempt: () => undefined }, wider);
  return 'place' in found ? found : undefined;
}

/** It is the turn of this instance: what it gets, or what must make room first. */
async function takeTurn(
  run: Run,
  observed: WithStored,
  settings: Settings,
  { limit, asking, request, why }: { limit: TenantLimitSpec; asking: Asking } & Pick<Means, 'request' | 'why'>,
): Promise<ClaimOutcome | { preemption: Preemption }> {
  const { deps, key } = run;
  const { instance, now } = observed;
  const { metadata, status } = instance;
  const { namespace = '' } = metadata;
  // Once others were told to end, they do not end for nothing: but not for what its owner asks for since.
  const isAsBefore = status?.othersEnded === true && status.observedGeneration === metadata.generation;
  const isBegun = isAsBefore && (isPlaceComing(instance) || deps.line.reserved(key) !== undefined);
  const nobody = isBegun ? undefined : deps.unbilled.preemptingRefusal(namespace, settings.image);
  const terms: Terms<OverBudget> = {
    namespace,
    limit,
    preempt: () => (nobody === undefined ? deps.line.preempt(key, request) : deps.line.coming(key, request)),
    overBudget: (place) => {
      const claim = claimOf(instance, { place }, now);
      const refused = deps.budgets.refusals(namespace, claim, key)(claim);
      return refused && { ...refused, claim, place };
    },
  };
  const supply = supplyFor(run);
  const first = admission(supply, terms, request);
  const found = 'preemption' in first ? (freeElsewhere(observed, supply, { terms, request }) ?? first) : first;
  if ('overGpus' in found) {
    const { over } = overCeilings(supply, { namespace, limit }, asking.request);
    return waitForTenant(run, found.overGpus.message, { ...asking, gpus: over });
  }
  if ('overBudget' in found) {
    const { waiting, claim, stop, place } = found.overBudget;
    const kept = waitForRecords(run, asking, settings, found.overBudget);
    const over = [{ offer: place.offerClass.id, claim, stop }, ...besides(asking, place)];
    return kept ?? waitAside(run, waiting, { ...asking, over });
  }
  if (!('refusal' in found)) {
    const place = placeOf(found);
    const refused =
      refusalOfDisk(run, asking, place, { limit, disk: observed.disk, gb: settings.diskGb }) ??
      refusalOfQuota(run, asking, place, settings);
    if (refused !== undefined) return refused;
  }
  if (!('refusal' in found) && deps.line.isEarly(key, asking.instance, placeOf(found).offerClass)) {
    waitForMore(run, asking, request);
    return { waiting: LATER };
  }
  // A place that others have ended for is billed from its grant.
  const isAsked = !('refusal' in found) && !isByPreemption(run, instance);
  const overUnbilled = isAsked ? refusalOfUnbilled(run, asking, placeOf(found)) : undefined;
  if (overUnbilled !== undefined) return overUnbilled;
  if ('place' in found) return take(run, observed, settings, found.place);
  // It waits for a place without holding any GPUs. Others of its tenant may find one.
  deps.tenantLine.serve(namespace);
  waitForMore(run, asking, request);
  if ('preemption' in found) return found;
  const isFull = found.refusal === 'NoCapacity';
  const lacks = isFull ? missingIsolation(request, supply.grant, instance.spec) : undefined;
  const left =
    isFull && why !== undefined ? `${found.message} Other GPUs would do, but not now: ${why}` : found.message;
  const message = lacks ?? left;
  if (nobody === undefined || !isFull) return withoutPlace(instance, found.refusal, message);
  return { ...withoutPlace(instance, found.refusal, `${message} ${nobody.message}`), until: nobody.until };
}

/** Whether others have ended for the place of an instance. */
function isByPreemption({ deps }: Run, instance: GpuInstance): boolean {
  return isPlaceComing(instance) && haveOthersEnded(deps.stores.instances.values(), instance);
}

function take(run: Run, observed: WithStored, settings: Settings, place: Place): Promise<ClaimOutcome> {
  const { deps, key } = run;
  const { instance, now } = observed;
  const claim = claimOf(instance, { place, byPreemption: isByPreemption(run, instance) }, now);
  const persistent = place.diskPersistent;
  deps.inventory.assume(instance, claim, { gb: settings.diskGb, persistent });
  // From here on the instance holds up no other, although the write is still to come.
  deps.line.granted(key, place.node);
  const claimed = claimWith(run, observed, claim, { persistent, settings });
  return mayClaimOnPod(run, observed) ? claimOnPod(run, claimed) : writeClaim(run, claimed);
}
