import { findCondition } from '../../kube/conditions.ts';
import type { Node } from '../../kube/types.ts';
import type { GpuPoolSpec, Toleration } from '../../resources/gpu-pool.ts';

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

/** The taint of GPU nodes. Instances tolerate it, and beside it what their pool names. */
const GPU_TOLERATION: Toleration = { key: 'nvidia.com/gpu', operator: 'Exists' };
/** Label of nodes that run no containers: a program plays their kubelet. */
const SIMULATED_LABEL = 'berth.dev/simulated';

/**
 * Label of nodes by the operator: `enforced` says that the container runtime gives a container the GPUs of its device
 * plugin alone, whatever the container's environment says. Kubernetes does not show how a runtime is set.
 */
const GPU_ISOLATION_LABEL = 'berth.dev/gpu-isolation';

/** The taints that the instances of a pool tolerate. */
export function tolerationsOf(pool: Pick<GpuPoolSpec, 'tolerations'> | undefined): Toleration[] {
  return [GPU_TOLERATION, ...(pool?.tolerations ?? [])];
}

// As in Kubernetes, staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go.
function tolerates({ key, operator, value = '', effect }: Toleration, taint: Taint): boolean {
  if (key !== taint.key || (effect !== undefined && effect !== taint.effect)) return false;
  return operator === 'Exists' || value === (taint.value ?? '');
}

/** Whether nothing new can be started on a node: it is going, not ready, cordoned, or has a taint of another kind. */
export function isClosed(node: Node, tolerations: readonly Toleration[]): boolean {
  const isTaken = node.spec?.taints?.some(
    (taint) => taint.effect !== 'PreferNoSchedule' && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
  const isGoing = node.metadata.deletionTimestamp !== undefined;
  return isGoing || !isNodeReady(node) || node.spec?.unschedulable === true || isTaken === true;
}

/** Taints with which the Cluster Autoscaler and Karpenter begin to empty a node. */
const EMPTYING: ReadonlySet<string> = new Set(['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']);

/** Whether a node is being emptied: its pods are taken away, and none of them is to blame. */
export function isBeingEmptied({ metadata, spec }: Node): boolean {
  if (metadata.deletionTimestamp !== undefined || spec?.unschedulable === true) return true;
  return spec?.taints?.some(({ key }) => EMPTYING.has(key)) === true;
}

export function isNodeReady(node: Node): boolean {
  return findCondition(node.status?.conditions, 'Ready')?.status === 'True';
}

export function isGpuIsolationEnforced(node: Node): boolean {
  return node.metadata.labels?.[GPU_ISOLATION_LABEL] === 'enforced';
}

export function isSimulated(node: Node): boolean {
  return node.metadata.labels?.[SIMULATED_LABEL] === 'true';
}
