import { findCondition } from '../../kube/conditions.ts';
import type { Node } from '../../kube/types.ts';

/** The taint of GPU nodes. Instances tolerate it and no other. */
export const GPU_TAINT = 'nvidia.com/gpu';
/** Label of nodes that run no containers: a program plays their kubelet. */
const SIMULATED_LABEL = 'berth.dev/simulated';

/**
 * Label of nodes by the operator: `enforced` says that the container runtime gives a container the GPUs of its device
 * plugin alone, whatever the container's environment says. Kubernetes does not show how a runtime is set.
 */
const GPU_ISOLATION_LABEL = 'berth.dev/gpu-isolation';

/** Whether nothing new can be started on a node: it is going, not ready, cordoned, or has a taint of another kind. */
export function isClosed(node: Node): boolean {
  const isTaken = node.spec?.taints?.some(({ key, effect }) => key !== GPU_TAINT && effect !== 'PreferNoSchedule');
  const isGoing = node.metadata.deletionTimestamp !== undefined;
  return isGoing || !isNodeReady(node) || node.spec?.unschedulable === true || isTaken === true;
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
