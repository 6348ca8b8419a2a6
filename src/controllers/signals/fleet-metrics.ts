import { Gauge, type Registry } from 'prom-client';
import type { Inventory } from '../../inventory/inventory.ts';
import type { Clock } from '../../lib/clock.ts';
import { instanceState } from '../../resources/instances/instance-state.ts';
import { type BudgetSource, budgetUses } from './budgets.ts';
import { FirstSeen } from './first-seen.ts';
import { type FleetSource, gpusByProduct, unhealthyByNode } from './gpus.ts';
import { ledgerLag, type LedgerSource } from './ledger.ts';
import { waitingLine, type WaitingSource } from './waiting.ts';

export interface FleetMetricsSource
  extends BudgetSource, Omit<FleetSource, 'inventory'>, LedgerSource, Omit<WaitingSource, 'inventory'> {
  inventory: Pick<Inventory, 'offers' | 'viewOf' | 'claimsOn'>;
  clock: Pick<Clock, 'now'>;
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

function* gpus(source: FleetMetricsSource): Iterable<Sample> {
  for (const [product, states] of gpusByProduct(source)) {
    for (const [state, value] of Object.entries(states)) yield { labels: { product, state }, value };
  }
}

function* unhealthyGPUs(source: FleetMetricsSource): Iterable<Sample> {
  for (const { node, product, count: value } of unhealthyByNode(source)) yield { labels: { node, product }, value };
}

/** One pass for each gauge: what they have in common is cheap to find again, and a scrape reads them in any order. */
function fleetGauges(source: FleetMetricsSource): FleetGauge[] {
  const { clock } = source;
  const [waitsSeen, billsSeen] = [new FirstSeen(), new FirstSeen()];
  const waiting = () => waitingLine(source, waitsSeen, clock.now());
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
      read: () => gpus(source),
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
      read: () => [{ labels: {}, value: ledgerLag(source, billsSeen, clock.now()) }],
    },
    {
      name: 'berth_budget_used_ratio',
      help: 'Share of its budget of the month that a tenant has spent, of the part that is used most, in whole per cents: 1 is all of it. Tenants without a budget have no series.',
      labelNames: ['tenant', 'policy'],
      read: () =>
        budgetUses(source, clock.now()).map(({ tenant, policy, ratio: value }) => ({
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
