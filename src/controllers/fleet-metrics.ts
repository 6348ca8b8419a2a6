import { Gauge, type Registry } from 'prom-client';
import { ofThisMonth } from '../budgets/counted.ts';
import type { Inventory } from '../inventory/inventory.ts';
import { gpuCounts } from '../inventory/nodes/gpu-counts.ts';
import { isOpen } from '../inventory/nodes/node-view.ts';
import { keyOf, type KubeObject, type Node, type PersistentVolumeClaim } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import { compareText } from '../lib/compare.ts';
import { FINALIZER } from '../resources/cleanup.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { instanceState } from '../resources/instances/instance-state.ts';
import { BYTES_PER_GB, isKept, isOrphan, sizeGbOf } from '../resources/pod/disk.ts';
import type { TenantLimit } from '../resources/tenants/tenant-limit.ts';
import { endingOf } from './gpu-instance/decide/endings.ts';
import type { UnrecordedInstances } from './gpu-instance/unrecorded.ts';

interface FleetMetricsSource {
  nodes: ReadStore<Node>;
  disks: Pick<ReadStore<PersistentVolumeClaim>, 'values'>;
  instances: ReadStore<GpuInstance>;
  tenantLimits: Pick<ReadStore<TenantLimit>, 'values'>;
  unrecorded: Pick<UnrecordedInstances, 'all'>;
  inventory: Pick<Inventory, 'offers' | 'viewOf' | 'claimsOn'>;
  clock: Pick<Clock, 'now'>;
  /** Whether series name tenants and their policies. */
  namesTenants: boolean;
}

interface Sample {
  labels: Record<string, string>;
  value: number;
}

interface FleetGauge {
  name: string;
  help: string;
  labelNames: string[];
  /** Called at each scrape while this replica shows the fleet. */
  read: () => Iterable<Sample>;
}

function* instancesByReason({ instances }: FleetMetricsSource): Iterable<Sample> {
  const counts = new Map<string, { state: string; count: number }>();
  for (const instance of instances.values()) {
    const { state, reason } = instanceState(instance);
    counts.set(reason, { state, count: (counts.get(reason)?.count ?? 0) + 1 });
  }
  for (const [reason, { state, count }] of counts) yield { labels: { state, reason }, value: count };
}

type GpuState = 'free' | 'rented' | 'others' | 'unhealthy' | 'closed';

/** How many GPUs of each product are in each state. Those that nothing has are closed where nothing new is placed. */
function* gpusByState({ nodes, inventory }: FleetMetricsSource): Iterable<Sample> {
  const products = new Map<string, Record<GpuState, number>>();
  for (const node of nodes.values()) {
    const { name } = node.metadata;
    const view = inventory.viewOf(name);
    if (view === undefined) continue;
    for (const { product, unhealthy, rented, others, free } of gpuCounts(view, inventory.claimsOn(name))) {
      const sums = products.get(product) ?? { free: 0, rented: 0, others: 0, unhealthy: 0, closed: 0 };
      sums.rented += rented;
      sums.others += others;
      sums.unhealthy += unhealthy;
      sums[isOpen(view) ? 'free' : 'closed'] += free;
      products.set(product, sums);
    }
  }
  for (const [product, states] of products) {
    for (const [state, value] of Object.entries(states)) yield { labels: { product, state }, value };
  }
}

/** GPUs that are out of service, by node and product. Nodes whose GPUs are all healthy are left out. */
function* unhealthyGPUs({ nodes, inventory }: FleetMetricsSource): Iterable<Sample> {
  for (const node of nodes.values()) {
    const { name } = node.metadata;
    const view = inventory.viewOf(name);
    if (view === undefined) continue;
    const counts = new Map<string, number>();
    for (const { product, unhealthy } of gpuCounts(view, [])) {
      if (unhealthy > 0) counts.set(product, (counts.get(product) ?? 0) + unhealthy);
    }
    for (const [product, value] of counts) yield { labels: { node: name, product }, value };
  }
}

/** Since when objects have been in a set, as this process saw it. It remembers only what is in the set. */
class FirstSeen {
  #since = new Map<string, number>();

  /** The time of each object in milliseconds since the epoch, by uid: `now` for those that were not there last time. */
  note(objects: readonly KubeObject[], now: number): ReadonlyMap<string, number> {
    const entries = objects.map(({ metadata: { uid = '' } }) => [uid, this.#since.get(uid) ?? now] as const);
    this.#since = new Map(entries);
    return this.#since;
  }
}

/** The instances that wait for a place of one product. */
interface Waiting {
  product: string;
  type: 'on_demand' | 'interruptible';
  count: number;
  oldestSeconds: number;
}

/**
 * Since when an instance waits, milliseconds since the epoch. Its status says so of a first start that was never edited
 * and of one that lost its place. Of others nothing was written down when they were switched on.
 */
function waitsSince({ metadata, status }: GpuInstance, seen: number): number {
  const isFirst = (status?.incarnation ?? 0) === 0 && metadata.generation === 1;
  const lostPlace = endingOf(status) !== undefined && endingOf(status)?.rule.next !== 'stop';
  const said = isFirst ? metadata.creationTimestamp : lostPlace ? status?.stages?.stopped : undefined;
  return said === undefined ? seen : new Date(said).getTime();
}

/**
 * The waiting line by product and type. The product is one that is for rent, `any` where the tenant names none, and
 * `other` where it names one that is not for rent: no text of a tenant becomes a label.
 */
function waitingLine({ instances, inventory, clock }: FleetMetricsSource, firstSeen: FirstSeen): Waiting[] {
  const now = clock.now();
  const waiters = instances.by('waiting', 'true');
  const seen = firstSeen.note(waiters, now);
  const offers = inventory.offers();
  const products = new Set(offers.map(({ product }) => product));
  const byOffer = new Map(offers.map(({ id, product }) => [id, product]));
  const groups = new Map<string, Waiting>();
  for (const instance of waiters) {
    const { offerId, gpu, type: asked } = instance.spec;
    const named = offerId === undefined ? (gpu?.product ?? 'any') : (byOffer.get(offerId) ?? 'other');
    const product = named === 'any' || products.has(named) ? named : 'other';
    const type = asked === 'Interruptible' ? 'interruptible' : 'on_demand';
    const key = `${product}/${type}`;
    const group = groups.get(key) ?? { product, type, count: 0, oldestSeconds: 0 };
    const since = waitsSince(instance, seen.get(instance.metadata.uid ?? '') ?? now);
    const oldestSeconds = Math.max(group.oldestSeconds, (now - since) / 1000);
    groups.set(key, { ...group, count: group.count + 1, oldestSeconds });
  }
  return [...groups.values()];
}

/** Instances that go or are gone, that had a start, and whose bill is in no usage record yet. */
function withoutRecord({ instances, unrecorded }: FleetMetricsSource): GpuInstance[] {
  const going = [...instances.values()].filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp !== undefined &&
      (status?.incarnation ?? 0) > 0 &&
      metadata.finalizers?.includes(FINALIZER) === true,
  );
  return [...going, ...unrecorded.all()];
}

/** How long the oldest of these bills has waited for its usage record, in seconds; 0 when none waits. */
function ledgerLag(source: FleetMetricsSource, firstSeen: FirstSeen): number {
  const now = source.clock.now();
  const late = withoutRecord(source);
  const seen = firstSeen.note(late, now);
  const since = late.map(({ metadata: { deletionTimestamp, uid = '' } }) =>
    deletionTimestamp === undefined ? (seen.get(uid) ?? now) : new Date(deletionTimestamp).getTime(),
  );
  return Math.max(0, ...since.map((time) => (now - time) / 1000));
}

function orphans({ disks, instances }: FleetMetricsSource): number {
  const found = [...disks.values()].filter((disk) =>
    isOrphan(disk, (name) => instances.get(keyOf({ namespace: disk.metadata.namespace, name })) !== undefined),
  );
  return found.length;
}

/** Tenants that are named. */
const MOST_TENANTS = 1_000;
const OTHERS = 'other';

interface KeptDisks {
  tenant: string;
  count: number;
  bytes: number;
}

/**
 * The disks that are kept although their instances are gone, of each tenant that has some. The thousand tenants that keep
 * most are named; the rest, and where no tenant is named all, are one.
 */
function keptDisks({ disks, instances, namesTenants }: FleetMetricsSource): KeptDisks[] {
  const kept = [...disks.values()].filter((disk) =>
    isKept(disk, (name) => instances.get(keyOf({ namespace: disk.metadata.namespace, name })) !== undefined),
  );
  const sumOf = (tenant: string, some: readonly PersistentVolumeClaim[]): KeptDisks => ({
    tenant,
    count: some.length,
    bytes: some.reduce((sum, disk) => sum + sizeGbOf(disk) * BYTES_PER_GB, 0),
  });
  if (!namesTenants) return [sumOf(OTHERS, kept)];
  const byTenant = Map.groupBy(kept, ({ metadata }) => metadata.namespace ?? '');
  const largest = [...byTenant]
    .map(([tenant, some]) => sumOf(tenant, some))
    .toSorted((a, b) => b.bytes - a.bytes || compareText(a.tenant, b.tenant));
  const named = largest.slice(0, MOST_TENANTS);
  const rest = largest.slice(MOST_TENANTS).flatMap(({ tenant }) => byTenant.get(tenant) ?? []);
  return rest.length === 0 ? named : [...named, sumOf(OTHERS, rest)];
}

/** How much a tenant has spent of its budget. */
interface BudgetUse {
  tenant: string;
  /** The TenantPolicies that the budget comes from, with commas between them. */
  policy: string;
  /** Of the part that is used most: 1 is all of it. */
  ratio: number;
}

function byAge({ metadata: a }: TenantLimit, { metadata: b }: TenantLimit): number {
  const byTime = compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '');
  return byTime || compareText(a.namespace ?? '', b.namespace ?? '');
}

/**
 * How much of the budget of the month each tenant has spent that has one. After the first 1,000 tenants, which are the
 * oldest, the one that has spent most stands for the others of its policy; where no tenant is named, for all.
 */
function budgetUses({ tenantLimits, clock, namesTenants }: FleetMetricsSource): BudgetUse[] {
  const now = clock.now();
  const counted = [...tenantLimits.values()].filter(({ status }) => ofThisMonth(status?.budget, now));
  const uses = counted.toSorted(byAge).map(({ metadata, spec, status }, index) => ({
    tenant: namesTenants && index < MOST_TENANTS ? (metadata.namespace ?? '') : OTHERS,
    policy: namesTenants ? spec.policies.toSorted(compareText).join(',') : OTHERS,
    ratio: (status?.budget?.percent ?? 0) / 100,
  }));
  const groups = Map.groupBy(uses, ({ tenant, policy }) => `${tenant}/${policy}`);
  return [...groups.values()].map((group) => group.reduce((most, use) => (use.ratio > most.ratio ? use : most)));
}

/** One pass for each gauge: what they have in common is cheap to find again, and a scrape reads them in any order. */
function fleetGauges(source: FleetMetricsSource): FleetGauge[] {
  const [waitsSeen, billsSeen] = [new FirstSeen(), new FirstSeen()];
  const waiting = () => waitingLine(source, waitsSeen);
  return [
    {
      name: 'berth_instances',
      help: 'Instances by state and by the reason of their Ready condition.',
      labelNames: ['state', 'reason'],
      read: () => instancesByReason(source),
    },
    {
      name: 'berth_gpus',
      help: 'GPUs and MIG slices by product and state: free, rented, others (pods without an instance), unhealthy, closed (free on a node that takes nothing new).',
      labelNames: ['product', 'state'],
      read: () => gpusByState(source),
    },
    {
      name: 'berth_unhealthy_gpus',
      help: 'GPUs and MIG slices that the device plugin has taken out of service, by node and product. Nodes without any have no series.',
      labelNames: ['node', 'product'],
      read: () => unhealthyGPUs(source),
    },
    {
      name: 'berth_waiting_instances',
      help: 'Instances that wait for a place, by the product that they ask for (any, other) and type.',
      labelNames: ['product', 'type'],
      read: () => waiting().map(({ product, type, count }) => ({ labels: { product, type }, value: count })),
    },
    {
      name: 'berth_waiting_oldest_seconds',
      help: 'How long the oldest of them has waited.',
      labelNames: ['product', 'type'],
      read: () => waiting().map(({ product, type, oldestSeconds: value }) => ({ labels: { product, type }, value })),
    },
    {
      name: 'berth_ledger_lag_seconds',
      help: 'How long the oldest instance that was deleted has waited for its usage record; 0 when none waits.',
      labelNames: [],
      read: () => [{ labels: {}, value: ledgerLag(source, billsSeen) }],
    },
    {
      name: 'berth_orphaned_disks',
      help: 'Disks that were to go with their instance and were kept, because it went without the controller or is not there yet.',
      labelNames: [],
      read: () => [{ labels: {}, value: orphans(source) }],
    },
    {
      name: 'berth_kept_disks',
      help: 'Disks that are kept although their instances are gone, because their owners asked for it or nobody saw the instances go.',
      labelNames: ['tenant'],
      read: () => keptDisks(source).map(({ tenant, count: value }) => ({ labels: { tenant }, value })),
    },
    {
      name: 'berth_kept_disk_bytes',
      help: 'Size that the disks of berth_kept_disks ask for.',
      labelNames: ['tenant'],
      read: () => keptDisks(source).map(({ tenant, bytes: value }) => ({ labels: { tenant }, value })),
    },
    {
      name: 'berth_budget_used_ratio',
      help: 'Share of its budget of the month that a tenant has spent, of the part that is used most, in whole per cents: 1 is all of it. Tenants without a budget have no series.',
      labelNames: ['tenant', 'policy'],
      read: () =>
        budgetUses(source).map(({ tenant, policy, ratio: value }) => ({
          labels: { tenant, policy },
          value,
        })),
    },
  ];
}

/**
 * Registers the metrics of the whole fleet; call it once per registry. They have values from a call of the returned
 * function until a call of what that returns: one replica shows them, so that sums over replicas stay true.
 */
export function createFleetMetrics(registry: Registry, source: FleetMetricsSource): () => () => void {
  let isShown = false;
  for (const { name, help, labelNames, read } of fleetGauges(source)) {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        // A reset gives a gauge without labels a 0, which would say that all is well.
        if (labelNames.length === 0) this.remove();
        if (isShown) for (const sample of read()) this.set(sample.labels, sample.value);
      },
    });
    gauge.reset();
  }
  return () => {
    isShown = true;
    return () => (isShown = false);
  };
}
