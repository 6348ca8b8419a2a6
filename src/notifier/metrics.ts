import { Counter, Gauge, type Registry } from 'prom-client';

/** Since when webhooks whose targets take events have something to deliver, by their keys. */
export class Lags {
  readonly #since = new Map<string, number>();

  /** `at`: milliseconds since the epoch. */
  note(key: string, at: number): void {
    this.#since.set(key, at);
  }

  forget(key: string): void {
    this.#since.delete(key);
  }

  clear(): void {
    this.#since.clear();
  }

  /** Milliseconds for which the oldest has waited; 0 when nothing waits. `now`: milliseconds since the epoch. */
  oldestMs(now: number): number {
    let oldest = now;
    for (const at of this.#since.values()) if (at < oldest) oldest = at;
    return now - oldest;
  }
}

const OUTCOMES = ['delivered', 'refused', 'not_allowed', 'unreachable', 'dropped'] as const;
/** How a delivery went, or that an event was given up. */
export type CountedOutcome = (typeof OUTCOMES)[number];

/** @param lagMs milliseconds that the oldest event waits whose target takes events; 0 when none does */
export function createNotifierMetrics(registry: Registry, lagMs: () => number): (outcome: CountedOutcome) => void {
  const deliveries = new Counter({
    name: 'berth_webhook_deliveries_total',
    help: 'Deliveries to webhooks by outcome: delivered, refused (another status than 2xx), not_allowed (where it leads), unreachable; dropped are events that were not taken for three days.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of OUTCOMES) deliveries.inc({ outcome }, 0);
  void new Gauge({
    name: 'berth_webhook_lag_seconds',
    help: 'Age of the oldest event that a webhook has not, of webhooks whose target takes events.',
    registers: [registry],
    collect() {
      this.set(lagMs() / 1000);
    },
  });
  return (outcome) => deliveries.inc({ outcome });
}
