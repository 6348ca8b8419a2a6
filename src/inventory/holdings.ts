import { instanceUidOf } from '../resources/pod/owner.ts';
import type { KubeObject, Pod } from '../kube/types.ts';
import type { Claim, GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { Reserved } from '../resources/instances/line.ts';
import { addAmounts, type Amounts, maxAmounts, subtractAmounts } from './amounts.ts';
import { unplaced } from './devices/rivals.ts';
import { amountsOfClaim, type NodeFacts, type NodeView } from './nodes/node-view.ts';
import { hasStopped } from './nodes/pod-end.ts';
import { requestsOfPod } from './nodes/pod-requests.ts';

/** What somebody takes from a node. */
interface Holding {
  /** That of the pod. */
  uid?: string | undefined;
  /** Namespace and uid of the instance that it was made for. */
  instance: string | undefined;
  amounts: Amounts;
}

/** What a pod takes from its node. */
export interface PodHolding extends Holding {
  node: string;
}

/** What a claim takes from its node, with what preemption needs to know of its instance. */
export interface ClaimHolding {
  key: string;
  /** Namespace and uid of the instance. */
  instance: string;
  /** The pod of the claim, once the controller has seen it. */
  podUid: string | undefined;
  claim: Claim;
  interruptible: boolean;
  /**
   * Since when the claim is about to be given up, milliseconds since the epoch: its instance is stopped, preempted,
   * failed or being deleted. Infinity when that was not written down yet; undefined when the claim stays.
   */
  leavingSince: number | undefined;
  ephemeralGb: number;
}

function identity(namespace = '', uid = ''): string {
  return `${namespace}/${uid}`;
}

/** Namespace and uid of the instance that a pod was made for, as it says itself. */
export function instanceOf(pod: Pod): string | undefined {
  const uid = instanceUidOf(pod);
  return uid && identity(pod.metadata.namespace, uid);
}

export function podHolding(pod: Pod): PodHolding | undefined {
  const node = pod.spec?.nodeName;
  if (node === undefined || hasStopped(pod)) return undefined;
  return { node, uid: pod.metadata.uid, instance: instanceOf(pod), amounts: requestsOfPod(pod) };
}

/** Size in GB of a disk that lives on the node. */
export function ephemeralGbOf(instance: Pick<GpuInstance, 'status'>): number {
  return instance.status?.diskPersistent === false ? (instance.status.diskGb ?? 0) : 0;
}

function leavingSince({
  metadata,
  spec,
  status,
}: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): number | undefined {
  const since = status?.ending?.at ?? metadata.deletionTimestamp;
  if (since !== undefined) return new Date(since).getTime();
  return spec.powerState === 'Stopped' ? Number.POSITIVE_INFINITY : undefined;
}

/** The place that others leave for an instance which waits for it. */
export function reservedFor({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): Reserved | undefined {
  return status?.claim === undefined && metadata.deletionTimestamp === undefined ? status?.reserved : undefined;
}

export function claimHolding(
  key: string,
  instance: Pick<GpuInstance, 'spec' | 'status'> & { metadata: KubeObject['metadata'] },
): ClaimHolding | undefined {
  const claim = instance.status?.claim;
  if (claim === undefined) return undefined;
  return {
    key,
    instance: identity(instance.metadata.namespace, instance.metadata.uid),
    podUid: instance.status?.podUid,
    claim,
    interruptible: instance.spec.type === 'Interruptible',
    leavingSince: leavingSince(instance),
    ephemeralGb: ephemeralGbOf(instance),
  };
}

/**
 * What is taken on a node by its pods, by its claims, and by claims of devices. Of a claim and its own pods the larger counts, resource by
 * resource: the pod may have other requests than the claim. A pod is a claim's own by what the controller wrote, on the pod
 * or in the status. Any other is one more: it must not hide what an instance has claimed.
 */
export function takenOn(
  facts: NodeFacts | undefined,
  pods: Iterable<PodHolding>,
  claims: readonly ClaimHolding[],
): Amounts {
  let used: Amounts = {};
  const podsOf = new Map<string, Amounts>();
  const named = new Map(claims.map(({ podUid, instance }) => [podUid, instance]));
  const instanceOfPod = (uid: string | undefined, madeFor: string | undefined) =>
    (uid === undefined ? undefined : named.get(uid)) ?? madeFor;
  const holdings: Holding[] = [...pods, ...(facts?.claimed ?? [])];
  for (const { uid, instance: madeFor, amounts } of holdings) {
    used = addAmounts(used, amounts);
    const holder = instanceOfPod(uid, madeFor) ?? uid;
    if (holder !== undefined) podsOf.set(holder, addAmounts(podsOf.get(holder) ?? {}, amounts));
  }
  for (const { instance, claim, ephemeralGb } of claims) {
    const own = podsOf.get(instance) ?? {};
    const claimed = maxAmounts(own, amountsOfClaim(facts, claim, ephemeralGb));
    used = addAmounts(used, subtractAmounts(claimed, own));
    podsOf.set(instance, claimed);
  }
  const { rivals = {}, located = [] } = facts ?? {};
  for (const { pod, instance: madeFor, amounts } of located) {
    const holder = instanceOfPod(pod, madeFor) ?? pod;
    podsOf.set(holder, subtractAmounts(podsOf.get(holder) ?? {}, amounts));
  }
  for (const pieces of podsOf.values()) used = addAmounts(used, unplaced(rivals, pieces));
  return used;
}

/** Whether a pod with devices is that of a claim. */
export function isOwn(
  { instance, podUid }: ClaimHolding,
  one: { pod: string | undefined; instance: string | undefined },
): boolean {
  return (podUid !== undefined && one.pod === podUid) || one.instance === instance;
}

/** The devices of a claim that are tainted: when it is given back, they go to nobody. */
function sickOf({ located }: NodeFacts, holding: ClaimHolding): Amounts {
  const own = located.filter((one) => isOwn(holding, one));
  return own.reduce<Amounts>((sum, { sick }) => addAmounts(sum, sick), {});
}

/** What a claim takes of other parts of the GPUs of its node while it has no device, or has none any more. */
export function unplacedOf(facts: NodeFacts, holding: ClaimHolding): Amounts {
  const { gpuCount, resourceName } = holding.claim;
  const own = facts.located.filter((one) => isOwn(holding, one));
  const placed = own.reduce((sum, { amounts }) => sum + (amounts[resourceName] ?? 0), 0);
  return unplaced(facts.rivals, { [resourceName]: gpuCount - placed });
}

/** What a claim leaves to others of its node when it is given back. */
export function leftBy(facts: NodeFacts, holding: ClaimHolding): Amounts {
  const { claim, ephemeralGb } = holding;
  return subtractAmounts(amountsOfClaim(facts, claim, ephemeralGb), sickOf(facts, holding));
}

/** The GPUs in {@link leftBy}. A search for victims asks it of every instance. */
export function gpusLeftBy(facts: NodeFacts, holding: ClaimHolding): number {
  const { gpuCount, resourceName } = holding.claim;
  return gpuCount - (sickOf(facts, holding)[resourceName] ?? 0);
}

/**
 * A node as the offers show it. What others leave for waiting instances is not free once they have left: those who
 * leave, and those who wait, count for the same GPUs.
 */
export function besideReserved(view: NodeView, reserved: Iterable<Reserved>, claims: Iterable<ClaimHolding>): NodeView {
  let { used } = view;
  for (const { claim, ephemeralGb, leavingSince: leaves } of claims) {
    if (leaves !== undefined) used = subtractAmounts(used, amountsOfClaim(view.facts, claim, ephemeralGb));
  }
  for (const place of reserved) {
    const taken = unplaced(view.facts.rivals, { [place.resourceName]: place.gpuCount });
    used = addAmounts(addAmounts(used, amountsOfClaim(view.facts, place, 0)), taken);
  }
  return { ...view, used: maxAmounts(view.used, used) };
}
