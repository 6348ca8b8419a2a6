import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';

const BUCKETS = [0.000_01, 0.0001, 0.001, 0.01, 0.1, 1, 10, 100, 1000];
const LABELS = ['name', 'controller'] as const;

/** The work queue metrics of client-go under the names that controller-runtime registers (pkg/metrics/workqueue.go). */
function registerMetrics(registry: Registry) {
  const common = { labelNames: LABELS, registers: [registry] };
  const counter = (name: string, help: string) => new Counter({ name, help, ...common });
  const histogram = (name: string, help: string) => new Histogram({ name, help, buckets: BUCKETS, ...common });
  return {
    depth: new Gauge({
      name: 'workqueue_depth',
      help: 'Current depth of workqueue by workqueue and priority',
      ...common,
    }),
    adds: counter('workqueue_adds_total', 'Total number of adds handled by workqueue'),
    retries: counter('workqueue_retries_total', 'Total number of retries handled by workqueue'),
    wait: histogram(
      'workqueue_queue_duration_seconds',
      'How long in seconds an item stays in workqueue before being requested',
    ),
    work: histogram('workqueue_work_duration_seconds', 'How long in seconds processing an item from workqueue takes.'),
  };
}

export class QueueMetrics {
  readonly labels: Readonly<Record<(typeof LABELS)[number], string>>;
  readonly #metrics: ReturnType<typeof registerMetrics>;
  readonly #clock: Clock;
  readonly #addedAt = new Map<string, number>();
  readonly #startedAt = new Map<string, number>();

  constructor(name: string, metrics: ReturnType<typeof registerMetrics>, clock: Clock) {
    this.labels = { name, controller: name };
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** Seconds since each key was taken that a worker has now. */
  get running(): number[] {
    return [...this.#startedAt.values()].map((since) => (this.#clock.monotonic() - since) / 1000);
  }

  added(key: string, depth: number): void {
    this.#metrics.adds.inc(this.labels);
    this.#metrics.depth.set(this.labels, depth);
    if (!this.#addedAt.has(key)) this.#addedAt.set(key, this.#clock.monotonic());
  }

  taken(key: string, depth: number): void {
    const now = this.#clock.monotonic();
    this.#metrics.depth.set(this.labels, depth);
    this.#metrics.wait.observe(this.labels, (now - (this.#addedAt.get(key) ?? now)) / 1000);
    this.#addedAt.delete(key);
    this.#startedAt.set(key, now);
  }

  finished(key: string): void {
    const now = this.#clock.monotonic();
    this.#metrics.work.observe(this.labels, (now - (this.#startedAt.get(key) ?? now)) / 1000);
    this.#startedAt.delete(key);
  }

  retried(): void {
    this.#metrics.retries.inc(this.labels);
  }
}

/** Registers the metrics of work queues; call it once per registry. The answer makes those of one queue. */
export function createQueueMetrics(registry: Registry, clock: Clock): (name: string) => QueueMetrics {
  const metrics = registerMetrics(registry);
  /** By name: each term as the leader has a queue of its own. */
  const queues = new Map<string, QueueMetrics>();
  function runningGauge(name: string, help: string, combine: (seconds: number[]) => number): void {
    const gauge: Gauge<(typeof LABELS)[number]> = new Gauge({
      name,
      help,
      labelNames: LABELS,
      registers: [registry],
      collect() {
        for (const { labels, running } of queues.values()) this.set(labels, combine(running));
      },
    });
    gauge.reset();
  }
  runningGauge(
    'workqueue_unfinished_work_seconds',
    'Seconds of work that is in progress and not yet observed by work_duration.',
    (all) => all.reduce((sum, one) => sum + one, 0),
  );
  runningGauge(
    'workqueue_longest_running_processor_seconds',
    'Seconds that the longest running processor has been running.',
    (all) => Math.max(0, ...all),
  );
  return (name) => {
    const queue = new QueueMetrics(name, metrics, clock);
    queues.set(name, queue);
    return queue;
  };
}
