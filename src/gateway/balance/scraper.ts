import type { Clock } from '../../lib/clock.ts';
import { FairShares, takePlaces } from '../../lib/shares.ts';
import type { Endpoint } from '../endpoint.ts';
import { freshLoad, hasLoadMetrics, parseLoad } from './load-metrics.ts';

export interface ScraperDeps {
  endpoints: () => Iterable<Endpoint>;
  /** Returns the text of GET /metrics of one endpoint. Rejects when there is none. */
  fetch: (endpoint: Endpoint) => Promise<string>;
  clock: Clock;
}

const EVERY_MS = 2000;
/** Scrapes at once. With half of what is free, a namespace alone has 8. */
const PARALLEL = 24;
const FACTOR = 1 / 2;

/** Reads the metrics of every available server every 2 s, as many at once as namespaces have a share of. A failed scrape makes none unhealthy. */
export class Scraper {
  readonly #deps: ScraperDeps;
  readonly #running = new Set<Endpoint>();
  readonly #places = new FairShares(PARALLEL, FACTOR);
  readonly #begunAt = new WeakMap<Endpoint, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: ScraperDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.round(), EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  round(): void {
    this.look([...this.#deps.endpoints()]);
  }

  /** Looks at what these servers have to do: by their metrics, as far as they have some, else by their answers. */
  look(endpoints: readonly Endpoint[]): void {
    const now = this.#deps.clock.monotonic();
    for (const endpoint of endpoints) if (freshLoad(endpoint, now) === undefined) endpoint.watched(now);
    const due = endpoints
      .filter((endpoint) => endpoint.available && endpoint.probe !== undefined && hasLoadMetrics(endpoint.probe.engine))
      .filter((endpoint) => !this.#running.has(endpoint))
      // Least recently tried first: with more servers than parallel scrapes, each still gets its turn.
      .toSorted((a, b) => (this.#begunAt.get(a) ?? 0) - (this.#begunAt.get(b) ?? 0));
    for (const endpoint of takePlaces(this.#places, due, ({ namespace }) => namespace)) void this.#scrape(endpoint);
  }

  async #scrape(endpoint: Endpoint): Promise<void> {
    this.#running.add(endpoint);
    this.#begunAt.set(endpoint, this.#deps.clock.monotonic());
    try {
      const text = await this.#deps.fetch(endpoint);
      const load = parseLoad(endpoint.probe?.engine ?? 'unknown', text, this.#deps.clock.monotonic());
      if (load !== undefined) endpoint.measured(load);
    } catch {
      // The old metrics become stale, and the balancer ignores stale metrics.
    } finally {
      this.#running.delete(endpoint);
      this.#places.give(endpoint.namespace, 1);
    }
  }
}
