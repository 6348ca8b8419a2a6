import { gpuCounts } from '../../../inventory/nodes/gpu-counts.ts';
import { isolationOn } from '../../../inventory/nodes/isolation.ts';
import { isNodeReady } from '../../../inventory/nodes/node-state.ts';
import type { NodeView } from '../../../inventory/nodes/node-view.ts';
import { findCondition } from '../../../kube/conditions.ts';
import type { Node } from '../../../kube/types.ts';
import type { Claim, GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { timeText } from '../../interface/schema.ts';
import type { FleetGpus, FleetNode } from './schema.ts';

/** An instance that has a place. */
export interface Placed {
  instance: GpuInstance;
  claim: Claim;
}

function holderOf({ instance, claim }: Placed): FleetGpus['instances'][number] {
  const { metadata, spec, status } = instance;
  return {
    id: metadata.name,
    namespace: metadata.namespace ?? '',
    state: instanceState(instance).state,
    type: spec.type === 'Interruptible' ? 1 : 0,
    gpu_count: claim.gpuCount,
    unhealthy_gpus: status?.unhealthyGPUs?.map(({ id }) => id) ?? [],
    devices: status?.devices?.map(({ uuid = null, ...device }) => ({ ...device, uuid })) ?? [],
  };
}

const NO_POOLS = 'There is no GPUPool: nothing is offered.';

/** Why nothing new is placed on a node, first what weighs most. */
function standingOf(
  node: Node,
  { facts, quarantined, switched }: NodeView,
  hasPools: boolean,
): Pick<FleetNode, 'state' | 'message'> {
  const { pool } = facts;
  if (!isNodeReady(node)) {
    const message = findCondition(node.status?.conditions, 'Ready')?.message ?? 'The kubelet has not reported yet.';
    return { state: 'not_ready', message };
  }
  if (node.spec?.unschedulable === true) return { state: 'cordoned', message: 'Cordoned: kubectl uncordon opens it.' };
  if (pool === undefined) {
    return { state: 'not_for_rent', message: hasPools ? 'No GPUPool selects it.' : NO_POOLS };
  }
  if (facts.isClosed) {
    const taints = node.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`) ?? [];
    return { state: 'closed', message: `Its pool does not tolerate all of its taints: ${taints.join(', ')}.` };
  }
  if (quarantined) {
    const message = 'In quarantine: instances keep failing to start here. It opens by itself within ten minutes.';
    return { state: 'quarantined', message };
  }
  if (switched) {
    const message =
      'Its GPUs were divided otherwise, or became fewer, while instances have them. It opens when these have ended.';
    return { state: 'closed', message };
  }
  if (typeof isolationOn(facts) === 'string') {
    return { state: 'closed', message: 'Its container runtime cannot do what the pool requires: user namespaces.' };
  }
  return { state: 'ready', message: '' };
}

function gpusOf(view: NodeView, placed: readonly Placed[]): FleetGpus[] {
  const claims = placed.map(({ claim }) => claim);
  return gpuCounts(view, claims).map(({ product, resourceName, isolation, memoryMb, ...count }) => ({
    gpu_name: product,
    resource: resourceName,
    isolation,
    memory_mb: memoryMb,
    total: count.total,
    unhealthy: count.unhealthy,
    others: count.others,
    free: count.free,
    instances: placed.filter(({ claim }) => claim.resourceName === resourceName).map(holderOf),
  }));
}

/** A node as operators see it; undefined for one without GPUs. `hasPools`: whether there is a GPUPool at all. */
export function toFleetNode(
  node: Node,
  view: NodeView,
  { placed, hasPools }: { placed: readonly Placed[]; hasPools: boolean },
): FleetNode | undefined {
  const gpus = gpusOf(view, placed);
  if (gpus.length === 0) return undefined;
  const { driverVersion, cudaVersion } = view.facts;
  return {
    name: node.metadata.name,
    pool: view.facts.pool?.name ?? null,
    ...standingOf(node, view, hasPools),
    simulated: view.facts.simulated,
    created_at: timeText(node.metadata.creationTimestamp),
    driver_version: driverVersion || null,
    cuda_version: cudaVersion || null,
    gpus,
  };
}
