import type { Stores } from '../../../caches/caches.ts';
import { compareRanks } from '../../../caches/line-order.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import { orderPools, type Pool } from '../../../inventory/pools.ts';
import { keyOf } from '../../../kube/types.ts';
import { compareText } from '../../../lib/compare.ts';
import { specVersion } from '../../../resources/gpu-pool.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../../../resources/tenants/tenant-limit.ts';
import { route } from '../../interface/route.ts';
import { timeText } from '../../interface/schema.ts';
import { sendJson } from '../../interface/send.ts';
import { displacedIn } from './displaced.ts';
import { type Placed, toFleetNode } from './nodes.ts';
import { type FleetNode, type FleetRecord, fleetSchema } from './schema.ts';

export interface FleetContext {
  offers: Inventory;
  stores: Stores<'instances' | 'pools' | 'nodes' | 'tenantLimits' | 'namespaces' | 'pods'>;
}

/** The operator reads the first of a line that may have thousands. */
const MOST_WAITING = 200;

function placedIn({ stores }: FleetContext): Placed[] {
  return [...stores.instances.values()].flatMap((instance) => {
    const claim = instance.status?.claim;
    return claim === undefined ? [] : [{ instance, claim }];
  });
}

function poolRecord({ stores }: FleetContext, pool: Pool, nodes: readonly FleetNode[]): FleetRecord['pools'][number] {
  const own = nodes.filter((node) => node.pool === pool.name);
  const gpus = own.flatMap((node) => node.gpus);
  const open = own.filter(({ state }) => state === 'ready').flatMap((node) => node.gpus);
  const { currency, sizes, prices } = pool.spec;
  const stored = stores.pools.get(pool.name);
  return {
    name: pool.name,
    version: stored === undefined ? null : specVersion(stored),
    currency,
    sizes: [...sizes],
    nodes: own.length,
    gpus: gpus.reduce((sum, { total }) => sum + total, 0),
    free: open.reduce((sum, { free }) => sum + free, 0),
    prices: prices.map(({ product, onDemand, interruptible }) => ({
      gpu_name: product,
      on_demand: onDemand,
      interruptible,
    })),
  };
}

/** What the operator's policies say of a tenant. */
function limitsOf(
  limit: TenantLimit | undefined,
): Pick<FleetRecord['tenants'][number], 'policies' | 'gpu_ceilings' | 'instances_max'> {
  const { policies = [], gpus = [], objects } = limit?.spec ?? {};
  return {
    policies: [...policies],
    gpu_ceilings: gpus.map(({ pool, product, max }) => ({ pool, gpu_name: product, max })),
    instances_max: objects?.instances ?? null,
  };
}

function tenantsOf(
  { stores }: FleetContext,
  placed: readonly Placed[],
  waiting: readonly GpuInstance[],
): FleetRecord['tenants'] {
  const ofPlaced = Map.groupBy(placed, ({ instance }) => instance.metadata.namespace ?? '');
  const ofWaiting = Map.groupBy(waiting, ({ metadata }) => metadata.namespace ?? '');
  const limited = [...stores.tenantLimits.values()].map(({ metadata }) => metadata.namespace ?? '');
  const names = new Set([
    ...limited,
    ...[...stores.instances.values()].map(({ metadata }) => metadata.namespace ?? ''),
  ]);
  return [...names]
    .map((namespace) => ({
      ...limitsOf(stores.tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }))),
      namespace,
      instances: stores.instances.by('namespace', namespace).length,
      gpus: (ofPlaced.get(namespace) ?? []).reduce((sum, { claim }) => sum + claim.gpuCount, 0),
      waiting: ofWaiting.get(namespace)?.length ?? 0,
    }))
    .toSorted((a, b) => b.gpus - a.gpus || compareText(a.namespace, b.namespace));
}

function waitingRecord(instance: GpuInstance): FleetRecord['waiting'][number] {
  const { metadata, spec } = instance;
  const { state, message } = instanceState(instance);
  return {
    id: metadata.name,
    namespace: metadata.namespace ?? '',
    type: spec.type === 'Interruptible' ? 1 : 0,
    gpu_name: spec.gpu?.product ?? null,
    gpu_count: spec.gpu?.count ?? 1,
    state,
    message,
    created_at: timeText(metadata.creationTimestamp),
  };
}

function toFleetRecord(source: FleetContext): FleetRecord {
  const { offers, stores } = source;
  const placed = placedIn(source);
  const placedOn = Map.groupBy(placed, ({ claim }) => claim.node);
  const pools = orderPools(stores.pools.values());
  const hasPools = pools.length > 0;
  const nodes = [...stores.nodes.values()]
    .flatMap((node) => {
      const { name } = node.metadata;
      const view = offers.viewOf(name);
      return (view && toFleetNode(node, view, { placed: placedOn.get(name) ?? [], hasPools })) ?? [];
    })
    .toSorted((a, b) => compareText(a.name, b.name));
  const waiting = stores.instances.by('waiting', 'true').toSorted(compareRanks);
  return {
    object: 'fleet',
    nodes,
    pools: pools.map((pool) => poolRecord(source, pool, nodes)).toSorted((a, b) => compareText(a.name, b.name)),
    tenants: tenantsOf(source, placed, waiting),
    waiting: waiting.slice(0, MOST_WAITING).map(waitingRecord),
    waiting_total: waiting.length,
    displaced: displacedIn(stores.instances),
  };
}

export const readFleetRoute = route({
  method: 'get',
  path: '/fleet',
  id: 'getFleet',
  tag: 'Fleet',
  scope: 'fleet:read',
  summary: 'Read all nodes, who has their GPUs, and who waits',
  description:
    'For operators. No key has the scope: only people who signed in to the dashboard and may list nodes, pods, ' +
    'GPUPools, GPUInstances and TenantLimits in the whole cluster.',
  success: { status: 200, schema: fleetSchema, description: 'The fleet as this replica sees it.' },
  handle(context: FleetContext, { response }) {
    sendJson(response, JSON.stringify(toFleetRecord(context)));
  },
});
