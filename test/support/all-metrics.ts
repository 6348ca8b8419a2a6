import { watchBilling, type TokenMeter } from '../../src/gateway/billing/token-meter.ts';
import { type MetricObject, Registry } from 'prom-client';
import { createCatchUpMetric } from '../../src/controllers/catch-up.ts';
import { createEndingMetric, createStartMetric } from '../../src/controllers/gpu-instance/start-metric.ts';
import { createFleetMetrics } from '../../src/controllers/fleet-metrics.ts';
import { GatewayMetrics } from '../../src/gateway/metrics.ts';
import { measureRequests } from '../../src/http/server/metrics.ts';
import { createClientMetrics } from '../../src/kube/client/client-metrics.ts';
import type { EventRecorder } from '../../src/kube/events.ts';
import { InformerMetrics } from '../../src/kube/watch/informer-metrics.ts';
import { createNotifierMetrics } from '../../src/notifier/metrics.ts';
import { createLog } from '../../src/roles/log.ts';
import { createControllerMetrics } from '../../src/runtime/controller-metrics.ts';
import { createLeaderMetric } from '../../src/runtime/lease.ts';
import { auditSink } from '../../src/ssh/audit.ts';
import { createPortMetrics } from '../../src/ports/metrics.ts';
import { createSshMetrics } from '../../src/ssh/ssh-metrics.ts';
import { controllerWorld } from './controller-world.ts';

/** A metric as it is registered. */
export type RegisteredMetric = MetricObject & { labelNames: readonly string[] };

/** Every metric of every role, apart from those of Node.js, by name. An integration test shows that there are no more. */
export function allMetrics(): RegisteredMetric[] {
  const registry = new Registry();
  const log = createLog({ level: 'silent', role: 'test', registry });
  const { deps } = controllerWorld();
  createClientMetrics(registry, 'host');
  createControllerMetrics(registry, deps.clock);
  createLeaderMetric(registry);
  createCatchUpMetric(registry);
  createStartMetric(registry);
  createEndingMetric(registry);
  createFleetMetrics(registry, { ...deps, ...deps.stores, namesTenants: true });
  measureRequests({ registry, clock: deps.clock });
  watchBilling(registry, {} as TokenMeter);
  auditSink(log, {} as EventRecorder, registry);
  createPortMetrics(registry);
  createSshMetrics(registry);
  createNotifierMetrics(registry, () => 0);
  // These are classes: what they count is of no interest here.
  void [
    new InformerMetrics(registry),
    new GatewayMetrics(registry, { endpoints: () => [], waiting: () => [], queued: () => [], namesTenants: true }),
  ];
  const metrics = registry.getMetricsAsArray() as RegisteredMetric[];
  return metrics.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
