import type { Histogram, Registry } from 'prom-client';

/** What was observed under one combination of labels. */
export class Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly #bounds: readonly number[];
  /** Per bucket, not cumulative; the last one is above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Readonly<Record<string, string>>, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  values(name: string): { metricName: string; labels: Record<string, string | number>; value: number }[] {
    let total = 0;
    const buckets = this.#counts.map((count, index) => {
      total += count;
      const le = this.#bounds[index] ?? '+Inf';
      return { metricName: `${name}_bucket`, labels: { le, ...this.labels }, value: total };
    });
    const labels = { ...this.labels };
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: total },
    ];
  }
}

export interface SeriesHistogram {
  /** The one of these labels, for the caller to keep. The caller bounds how many there are. */
  series(labels: Record<string, string>): Series;
}

/**
 * A histogram in a registry of prom-client, for what is observed with every request: prom-client's own checks and hashes
 * all labels at every observation, which costs more than the rest of a request's accounts.
 */
export function createHistogram(
  registry: Registry,
  { name, help, buckets }: { name: string; help: string; buckets: readonly number[] },
): SeriesHistogram {
  const all = new Map<string, Series>();
  const metric = {
    name,
    get: () => {
      const values = [...all.values()].flatMap((one) => one.values(name));
      return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values });
    },
    reset: () => all.clear(),
  };
  // All that a registry calls; its type asks for one of the library's own classes.
  registry.registerMetric(metric as unknown as Histogram);
  return {
    series(labels) {
      const key = JSON.stringify(labels);
      const known = all.get(key) ?? new Series(labels, buckets);
      all.set(key, known);
      return known;
    },
  };
}
