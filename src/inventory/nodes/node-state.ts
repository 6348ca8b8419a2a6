import { findCondition } from '../../kube/conditions.ts';
import type { Node } from '../../kube/types.ts';

/** The taint of GPU nodes; instances tolerate it and no other. */
export const GPU_TAINT = 'nvidia.com/gpu';
/** Label of nodes where no container really runs. */
const SIMULATED_LABEL = 'berth.dev/simulated';

/** Why nothing can be started on a node, or undefined when it can. */
export function closedBecause(node: Node): string | undefined {
  if (node.metadata.deletionTimestamp !== undefined) return 'the node is being deleted';
  if (!isNodeReady(node)) return 'the node is not ready';
  if (node.spec?.unschedulable === true) return 'the node is cordoned';
  const taint = node.spec?.taints?.find(({ key, effect }) => key !== GPU_TAINT && effect !== 'PreferNoSchedule');
  return taint === undefined ? undefined : `the node has the taint ${taint.key}:${taint.effect}`;
}

export function isNodeReady(node: Node): boolean {
  return findCondition(node.status?.conditions, 'Ready')?.status === 'True';
}

export function isSimulated(node: Node): boolean {
  return node.metadata.labels?.[SIMULATED_LABEL] === 'true';
}
