import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import { createQueueMetrics, type QueueMetrics } from './queue/queue-metrics.ts';

export type ReconcileOutcome = 'success' | 'error' | 'requeue' | 'requeue_after';

/** What one controller tells about itself. */
export interface ControllerMetrics {
  readonly queue: QueueMetrics;
  started(): void;
  finished(outcome: ReconcileOutcome, seconds: number): void;
  timedOut(): void;
}

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];

/** controller-runtime's metrics (pkg/internal/controller/metrics/metrics.go), once per registry. */
export function createControllerMetrics(registry: Registry, clock: Clock) {
  const registers = [registry];
  const labelNames = ['controller'] as const;
  const total = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Total number of reconciliations per controller',
    labelNames: ['controller', 'result'],
    registers,
  });
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Total number of reconciliation errors per controller',
    labelNames,
    registers,
  });
  // Always zero: Berth retries every error. Dashboards of controller-runtime read it.
  const terminal = new Counter({
    name: 'controller_runtime_terminal_reconcile_errors_total',
    help: 'Total number of terminal reconciliation errors per controller',
    labelNames,
    registers,
  });
  const timeouts = new Counter({
    name: 'controller_runtime_reconcile_timeouts_total',
    help: 'Total number of reconciliation timeouts per controller',
    labelNames,
    registers,
  });
  const time = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Length of time per reconciliation per controller',
    labelNames,
    buckets: BUCKETS,
    registers,
  });
  const workers = new Gauge({
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'Maximum number of concurrent reconciles per controller',
    labelNames,
    registers,
  });
  const active = new Gauge({
    name: 'controller_runtime_active_workers',
    help: 'Number of currently used workers per controller',
    labelNames,
    registers,
  });
  const queues = createQueueMetrics(registry, clock);

  return (controller: string, concurrency: number): ControllerMetrics => {
    workers.set({ controller }, concurrency);
    active.set({ controller }, 0);
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) total.inc({ controller, result }, 0);
    for (const counter of [errors, terminal, timeouts]) counter.inc({ controller }, 0);
    return {
      queue: queues(controller),
      started: () => active.inc({ controller }),
      finished(outcome, seconds) {
        active.dec({ controller });
        total.inc({ controller, result: outcome });
        if (outcome === 'error') errors.inc({ controller });
        time.observe({ controller }, seconds);
      },
      timedOut: () => timeouts.inc({ controller }),
    };
  };
}
