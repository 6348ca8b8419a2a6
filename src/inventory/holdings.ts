import { instanceUidsOf } from '../resources/pod/owner.ts';
import type { KubeObject, Pod } from '../kube/types.ts';
import type { Claim, GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { Reserved } from '../resources/instances/line.ts';
import { addAmounts, type Amounts, maxAmounts, subtractAmounts } from './amounts.ts';
import { amountsOfClaim, type NodeFacts, type NodeView } from './nodes/node-view.ts';
import { hasStopped } from './nodes/pod-end.ts';
import { requestsOfPod } from './nodes/pod-requests.ts';

/** What a pod takes from its node. */
export interface PodHolding {
  node: string;
  /** Namespace and uid of the instance it belongs to. */
  instance: string | undefined;
  amounts: Amounts;
}

/** What a claim takes from its node, with what preemption needs to know of its instance. */
export interface ClaimHolding {
  key: string;
  /** Namespace and uid of the instance. */
  instance: string;
  claim: Claim;
  interruptible: boolean;
  /**
   * Since when the claim is about to be given up, milliseconds since the epoch: its instance is stopped, preempted,
   * failed or being deleted. Infinity when that was not written down yet; undefined when the claim stays.
   */
  leavingSince: number | undefined;
  ephemeralGb: number;
}

// With the namespace, because any tenant may write the uid of another tenant's instance into a label.
function identity(namespace = '', uid = ''): string {
  return `${namespace}/${uid}`;
}

/** Namespace and uid of the instance that a pod belongs to. */
export function instanceOf(pod: Pod): string | undefined {
  const [uid] = instanceUidsOf(pod);
  return uid && identity(pod.metadata.namespace, uid);
}

export function podHolding(pod: Pod): PodHolding | undefined {
  const node = pod.spec?.nodeName;
  if (node === undefined || hasStopped(pod)) return undefined;
  return { node, instance: instanceOf(pod), amounts: requestsOfPod(pod) };
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
    claim,
    interruptible: instance.spec.type === 'Interruptible',
    leavingSince: leavingSince(instance),
    ephemeralGb: ephemeralGbOf(instance),
  };
}

/**
 * What is taken on a node by its pods, by its claims, and by claims of devices. Of a claim and its own pods the larger counts, resource by
 * resource: a pod that only bears the label of an instance must not hide what the instance has claimed.
 */
export function takenOn(
  facts: NodeFacts | undefined,
  pods: Iterable<PodHolding>,
  claims: Iterable<ClaimHolding>,
): Amounts {
  let used: Amounts = {};
  const podsOf = new Map<string, Amounts>();
  for (const { instance, amounts } of [...pods, ...(facts?.claimed ?? [])]) {
    used = addAmounts(used, amounts);
    if (instance !== undefined) podsOf.set(instance, addAmounts(podsOf.get(instance) ?? {}, amounts));
  }
  for (const { instance, claim, ephemeralGb } of claims) {
    const own = podsOf.get(instance) ?? {};
    const claimed = amountsOfClaim(facts, claim, ephemeralGb);
    used = addAmounts(used, subtractAmounts(maxAmounts(own, claimed), own));
  }
  return used;
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
  for (const place of reserved) used = addAmounts(used, amountsOfClaim(view.facts, place, 0));
  return { ...view, used: maxAmounts(view.used, used) };
}
