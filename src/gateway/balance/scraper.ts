import type { Endpoint } from '../endpoint.ts';
import { hasLoadMetrics, parseLoad } from './load-metrics.ts';

export interface ScraperDeps {
  endpoints: () => Iterable<Endpoint>;
  /** The text of GET /metrics of one endpoint; rejects when there is none. */
  fetch: (endpoint: Endpoint) => Promise<string>;
  now: () => number;
}

const EVERY_MS = 2000;
const PARALLEL = 8;

/**
 * Reads the metrics of every available model server that has any, every 2 s, at most 8 at once. What cannot be read
 * goes stale by itself and is then ignored: a failed scrape never makes a server unhealthy.
 */
export class Scraper {
  readonly #deps: ScraperDeps;
  readonly #running = new Set<Endpoint>();
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
    const due = [...this.#deps.endpoints()]
      .filter((endpoint) => endpoint.available && endpoint.probe !== undefined && hasLoadMetrics(endpoint.probe.engine))
      .filter((endpoint) => !this.#running.has(endpoint))
      // The ones not tried for longest first: with more servers than places every one still gets its turn.
      .toSorted((a, b) => (this.#begunAt.get(a) ?? 0) - (this.#begunAt.get(b) ?? 0));
    for (const endpoint of due.slice(0, PARALLEL - this.#running.size)) void this.#scrape(endpoint);
  }

  async #scrape(endpoint: Endpoint): Promise<void> {
    this.#running.add(endpoint);
    this.#begunAt.set(endpoint, this.#deps.now());
    try {
      const text = await this.#deps.fetch(endpoint);
      const load = parseLoad(endpoint.probe?.engine ?? 'unknown', text, this.#deps.now());
      if (load !== undefined) endpoint.load = load;
    } catch {
      // Stale numbers are ignored where they are used.
    } finally {
      this.#running.delete(endpoint);
    }
  }
}
