import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../../lib/clock.ts';

/** What a work queue tells about itself. */
export interface QueueMetrics {
  added(key: string, depth: number): void;
  taken(key: string, depth: number): void;
  finished(key: string): void;
  retried(): void;
}

const BUCKETS = [0.000_01, 0.0001, 0.001, 0.01, 0.1, 1, 10, 100, 1000];

/** The work queue metrics of client-go under the names that controller-runtime registers (pkg/metrics/workqueue.go). */
export function createQueueMetrics(registry: Registry, clock: Clock): (name: string) => QueueMetrics {
  const registers = [registry];
  const labelNames = ['name', 'controller'] as const;
  const help = {
    depth: 'Current depth of workqueue by workqueue and priority',
    adds: 'Total number of adds handled by workqueue',
    wait: 'How long in seconds an item stays in workqueue before being requested',
    work: 'How long in seconds processing an item from workqueue takes.',
    retries: 'Total number of retries handled by workqueue',
    unfinished: 'Seconds of work that is in progress and not yet observed by work_duration.',
    longest: 'Seconds that the longest running processor has been running.',
  };
  const started = new Map<string, Map<string, number>>();

  const depths = new Gauge({ name: 'workqueue_depth', help: help.depth, labelNames, registers });
  const adds = new Counter({ name: 'workqueue_adds_total', help: help.adds, labelNames, registers });
  const retries = new Counter({ name: 'workqueue_retries_total', help: help.retries, labelNames, registers });
  const waits = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: help.wait,
    labelNames,
    buckets: BUCKETS,
    registers,
  });
  const works = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: help.work,
    labelNames,
    buckets: BUCKETS,
    registers,
  });

  function runningGauge(name: string, text: string, combine: (seconds: number[]) => number): void {
    const gauge: Gauge<'name' | 'controller'> = new Gauge({
      name,
      help: text,
      labelNames,
      registers,
      collect() {
        for (const [queue, keys] of started) {
          const seconds = [...keys.values()].map((since) => (clock.monotonic() - since) / 1000);
          this.set({ name: queue, controller: queue }, combine(seconds));
        }
      },
    });
    gauge.reset();
  }
  runningGauge('workqueue_unfinished_work_seconds', help.unfinished, (all) => all.reduce((sum, one) => sum + one, 0));
  runningGauge('workqueue_longest_running_processor_seconds', help.longest, (all) => Math.max(0, ...all));

  return (name) => {
    const labels = { name, controller: name };
    const addedAt = new Map<string, number>();
    const startedAt = new Map<string, number>();
    started.set(name, startedAt);
    return {
      added(key, depth) {
        adds.inc(labels);
        depths.set(labels, depth);
        if (!addedAt.has(key)) addedAt.set(key, clock.monotonic());
      },
      taken(key, depth) {
        const now = clock.monotonic();
        depths.set(labels, depth);
        waits.observe(labels, (now - (addedAt.get(key) ?? now)) / 1000);
        addedAt.delete(key);
        startedAt.set(key, now);
      },
      finished(key) {
        const now = clock.monotonic();
        works.observe(labels, (now - (startedAt.get(key) ?? now)) / 1000);
        startedAt.delete(key);
      },
      retried() {
        retries.inc(labels);
      },
    };
  };
}
