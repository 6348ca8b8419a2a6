import { findCondition } from '../../kube/conditions.ts';
import type { Node } from '../../kube/types.ts';
import type { GpuPoolSpec, Toleration } from '../../resources/gpu-pool.ts';
import { makerOf } from '../makers/makers.ts';

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

/** Label of nodes that run no containers: a program plays their kubelet. */
const SIMULATED_LABEL = 'berth.dev/simulated';

/**
 * Label of nodes by the operator: `enforced` says that the container runtime gives a container the GPUs of its device
 * plugin alone, whatever the container's environment says. Kubernetes does not show how a runtime is set.
 */
const GPU_ISOLATION_LABEL = 'berth.dev/gpu-isolation';

/** The taints that the instances of a pool tolerate: those of its GPUs, by the names of their resources, and its own. */
export function tolerationsOf(pool: Pick<GpuPoolSpec, 'tolerations' | 'devices'> | undefined): Toleration[] {
  const ofGpus = makerOf(pool?.devices).resourceNames.map((key): Toleration => ({ key, operator: 'Exists' }));
  return [...ofGpus, ...(pool?.tolerations ?? [])];
}

// As in Kubernetes, staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go.
function tolerates({ key, operator, value = '', effect }: Toleration, taint: Taint): boolean {
  if (key !== taint.key || (effect !== undefined && effect !== taint.effect)) return false;
  return operator === 'Exists' || value === (taint.value ?? '');
}

/** Why nothing new can be started on a node, whatever it has. */
export type Closure =
  | { reason: 'Deleted' | 'NotReady' | 'Cordoned' }
  | { reason: 'Tainted'; taint: Taint }
  | { reason: 'Architecture'; architecture: string };

/** Processor architectures, by Go's names, that Berth's tools are built for; undefined: all. */
export type Architectures = ReadonlySet<string> | undefined;

/** No program of Berth's tools would run there, so no instance would start. Simulated nodes run none. */
function foreignOf(node: Node, architectures: Architectures): Closure[] {
  const architecture = node.metadata.labels?.['kubernetes.io/arch'];
  if (architecture === undefined || architectures === undefined || isSimulated(node)) return [];
  return architectures.has(architecture) ? [] : [{ reason: 'Architecture', architecture }];
}

/** Everything that closes a node: it is going, not ready, cordoned, of a foreign architecture, or has a taint of another kind. */
export function closuresOf(node: Node, tolerations: readonly Toleration[], architectures: Architectures): Closure[] {
  const taints = (node.spec?.taints ?? []).filter(
    (taint) => taint.effect !== 'PreferNoSchedule' && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
  return [
    ...(node.metadata.deletionTimestamp === undefined ? [] : [{ reason: 'Deleted' } as const]),
    ...(isNodeReady(node) ? [] : [{ reason: 'NotReady' } as const]),
    ...(node.spec?.unschedulable === true ? [{ reason: 'Cordoned' } as const] : []),
    ...foreignOf(node, architectures),
    ...taints.map((taint) => ({ reason: 'Tainted', taint }) as const),
  ];
}

/** Whether nothing new can be started on a node. */
export function isClosed(node: Node, tolerations: readonly Toleration[], architectures: Architectures): boolean {
  return closuresOf(node, tolerations, architectures).length > 0;
}

/** Taints with which the Cluster Autoscaler and Karpenter begin to empty a node. */
const EMPTYING: ReadonlySet<string> = new Set(['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']);

/** Whether a taint with this key goes by itself, with its node or with what is wrong there: no instance is to tolerate it. */
export function isPassing(key: string): boolean {
  return /^node\.(?:cloudprovider\.)?kubernetes\.io\//.test(key) || EMPTYING.has(key);
}

/** Whether a node is being emptied: its pods are taken away, and none of them is to blame. */
export function isBeingEmptied({ metadata, spec }: Node): boolean {
  if (metadata.deletionTimestamp !== undefined || spec?.unschedulable === true) return true;
  return spec?.taints?.some(({ key }) => EMPTYING.has(key)) === true;
}

export function isNodeReady(node: Node): boolean {
  return findCondition(node.status?.conditions, 'Ready')?.status === 'True';
}

/** Whether the operator says that a node is shut down, and it does not answer (KEP-2268, non-graceful node shutdown). */
export function isOutOfService(node: Node): boolean {
  const isTainted = node.spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/out-of-service') === true;
  return isTainted && !isNodeReady(node);
}

/**
 * Whether a node does not answer: Kubernetes has missed its heartbeats (pkg/controller/nodelifecycle). A kubelet that says
 * itself that its node is not ready answers, and its containers run on.
 */
export function isNodeSilent(node: Node): boolean {
  return findCondition(node.status?.conditions, 'Ready')?.status === 'Unknown';
}

export function isGpuIsolationEnforced(node: Node): boolean {
  return node.metadata.labels?.[GPU_ISOLATION_LABEL] === 'enforced';
}

export function isSimulated(node: Node): boolean {
  return node.metadata.labels?.[SIMULATED_LABEL] === 'true';
}
