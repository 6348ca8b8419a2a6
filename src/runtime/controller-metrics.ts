import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import { createQueueMetrics, type QueueMetrics } from './queue-metrics.ts';

const OUTCOMES = ['success', 'error', 'requeue', 'requeue_after'] as const;
export type ReconcileOutcome = (typeof OUTCOMES)[number];

export interface ControllerMetrics {
  readonly queue: QueueMetrics;
  started(): void;
  finished(outcome: ReconcileOutcome, seconds: number): void;
  timedOut(): void;
}

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];

/** controller-runtime's metrics (pkg/internal/controller/metrics/metrics.go). */
function registerMetrics(registry: Registry) {
  const registers = [registry];
  const common = { labelNames: ['controller'] as const, registers };
  const counter = (name: string, help: string) => new Counter({ name, help, ...common });
  const gauge = (name: string, help: string) => new Gauge({ name, help, ...common });
  return {
    total: new Counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Total number of reconciliations per controller',
      labelNames: ['controller', 'result'],
      registers,
    }),
    errors: counter(
      'controller_runtime_reconcile_errors_total',
      'Total number of reconciliation errors per controller',
    ),
    // Always zero, since Berth retries every error; dashboards for controller-runtime read it.
    terminal: counter(
      'controller_runtime_terminal_reconcile_errors_total',
      'Total number of terminal reconciliation errors per controller',
    ),
    timeouts: counter(
      'controller_runtime_reconcile_timeouts_total',
      'Total number of reconciliation timeouts per controller',
    ),
    time: new Histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Length of time per reconciliation per controller',
      buckets: BUCKETS,
      ...common,
    }),
    workers: gauge(
      'controller_runtime_max_concurrent_reconciles',
      'Maximum number of concurrent reconciles per controller',
    ),
    active: gauge('controller_runtime_active_workers', 'Number of currently used workers per controller'),
  };
}

/** Registers the metrics of controllers; call it once per registry. The answer makes those of one controller. */
export function createControllerMetrics(registry: Registry, clock: Clock) {
  const { total, errors, terminal, timeouts, time, workers, active } = registerMetrics(registry);
  const queues = createQueueMetrics(registry, clock);
  return (controller: string, concurrency: number): ControllerMetrics => {
    workers.set({ controller }, concurrency);
    active.set({ controller }, 0);
    for (const result of OUTCOMES) total.inc({ controller, result }, 0);
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
