import { INSTANCE_UID_LABEL } from '../resources/pod/owner.ts';
import type { KubeObject, Pod } from '../kube/types.ts';
import type { Claim, GpuInstance } from '../resources/gpu-instance.ts';
import { addAmounts, type Amounts } from './amounts.ts';
import { amountsOfClaim, type NodeFacts } from './nodes/node-view.ts';
import { hasEnded, requestsOfPod } from './nodes/pod-requests.ts';

/** What a pod takes from its node. */
export interface PodHolding {
  node: string;
  /** uid of the instance it belongs to. */
  instance: string | undefined;
  amounts: Amounts;
}

/** What a claim takes from its node, with what preemption needs to know of its instance. */
export interface ClaimHolding {
  key: string;
  uid: string;
  claim: Claim;
  interruptible: boolean;
  /** The claim is about to be given up: its instance is stopped, preempted, failed or being deleted. */
  leaving: boolean;
  ephemeralGb: number;
}

export function podHolding(pod: Pod): PodHolding | undefined {
  const node = pod.spec?.nodeName;
  if (node === undefined || hasEnded(pod)) return undefined;
  return { node, instance: pod.metadata.labels?.[INSTANCE_UID_LABEL], amounts: requestsOfPod(pod) };
}

/** Size in GB of a disk that lives on the node. */
export function ephemeralGbOf(instance: Pick<GpuInstance, 'status'>): number {
  return instance.status?.diskPersistent === false ? (instance.status.diskGb ?? 0) : 0;
}

function isLeaving({ metadata, spec, status }: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): boolean {
  return metadata.deletionTimestamp !== undefined || status?.ending !== undefined || spec.powerState === 'Stopped';
}

export function claimHolding(
  key: string,
  instance: Pick<GpuInstance, 'spec' | 'status'> & { metadata: KubeObject['metadata'] },
): ClaimHolding | undefined {
  const claim = instance.status?.claim;
  if (claim === undefined) return undefined;
  return {
    key,
    uid: instance.metadata.uid ?? '',
    claim,
    interruptible: instance.spec.type === 'Interruptible',
    leaving: isLeaving(instance),
    ephemeralGb: ephemeralGbOf(instance),
  };
}

/** What is taken on a node by its pods and by claims without a pod there. A claim and its own pod count once. */
export function takenOn(
  facts: NodeFacts | undefined,
  pods: Iterable<PodHolding>,
  claims: Iterable<ClaimHolding>,
): { used: Amounts; leaving: Amounts } {
  let used: Amounts = {};
  let leaving: Amounts = {};
  const podsOf = new Map<string, Amounts>();
  for (const pod of pods) {
    used = addAmounts(used, pod.amounts);
    if (pod.instance === undefined) continue;
    podsOf.set(pod.instance, addAmounts(podsOf.get(pod.instance) ?? {}, pod.amounts));
  }
  for (const holding of claims) {
    const own = podsOf.get(holding.uid);
    const amounts = own ?? amountsOfClaim(facts, holding.claim, holding.ephemeralGb);
    if (own === undefined) used = addAmounts(used, amounts);
    if (holding.leaving) leaving = addAmounts(leaving, amounts);
  }
  return { used, leaving };
}
