import type { Endpoint } from '../endpoint.ts';
import type { Probe, ServedModel } from '../discovery/types.ts';
import { buildRing, pickBounded, type Ring } from './ring.ts';

/** An endpoint that serves a model, and what the model is called there. */
export interface Member {
  endpoint: Endpoint;
  upstreamModel: string;
  /** Tokens, as this endpoint told. */
  contextLength?: number | undefined;
}

/** Model-server metrics older than this say nothing (llm-d-router #2547: 200 ms was far too short, 5 s is not). */
const FRESH_MS = 5000;
/** From where on the endpoint picker of the Gateway API inference extension calls a server saturated. */
const SATURATED_QUEUE = 5;
const SATURATED_KV = 0.95;
/**
 * A cached prefix is worth waiting behind so many more requests than elsewhere, and none once so many wait everywhere:
 * of the values tried in the simulation, those with the shortest tail from idle to twice what the engines can do.
 */
const QUEUE_SLACK = 2;
const LONG_QUEUE = 4;

/** The endpoints of one model, and the choice among them. */
export class Pool {
  readonly model: string;
  readonly members: readonly Member[];
  facts: ServedModel | undefined;
  /** Of any endpoint, also of one that is gone: what the model list says. */
  probe: Probe | undefined;
  readonly #now: () => number;
  readonly #loads: number[];
  #ring: Ring | undefined;
  #turn = 0;

  constructor(model: string, members: readonly Member[], now: () => number) {
    this.model = model;
    this.members = members;
    this.#now = now;
    this.#loads = members.map(() => 0);
  }

  describe(facts: ServedModel | undefined, probe: Probe | undefined): void {
    this.facts = facts;
    this.probe = probe;
  }

  sameMembers(members: readonly Member[]): boolean {
    return (
      members.length === this.members.length &&
      members.every(({ endpoint, upstreamModel, contextLength }, index) => {
        const mine = this.members[index];
        return (
          mine?.endpoint === endpoint && mine.upstreamModel === upstreamModel && mine.contextLength === contextLength
        );
      })
    );
  }

  get readyCount(): number {
    return this.members.filter(({ endpoint }) => endpoint.available).length;
  }

  /**
   * Chooses where to send a request. With a key (a hash of what decides the prefix cache) by bounded-load consistent
   * hashing, without one where the fewest requests are outstanding. Servers whose own fresh metrics call them
   * saturated come last.
   *
   * @param tried endpoints that this request was sent to already
   */
  pick(key: number | undefined, tried: readonly Endpoint[]): Member | undefined {
    const usable = (index: number): boolean => {
      const endpoint = this.members[index]?.endpoint;
      return endpoint !== undefined && endpoint.available && endpoint.breaker.permits && !tried.includes(endpoint);
    };
    if (this.members.length <= 1) return usable(0) ? this.members[0] : undefined;
    const now = this.#now();
    const relaxed = (index: number): boolean => usable(index) && !saturated(this.members[index]?.endpoint, now);
    const index = this.#choose(key, now, relaxed);
    return this.members[index < 0 ? this.#choose(key, now, usable) : index];
  }

  /** Milliseconds until an endpoint that is there may be tried again, undefined when there is none. */
  get waitMs(): number | undefined {
    const waits = this.members
      .filter(({ endpoint }) => endpoint.available)
      .map(({ endpoint }) => endpoint.breaker.waitMs);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  #choose(key: number | undefined, now: number, allowed: (index: number) => boolean): number {
    if (key === undefined) return this.#leastOutstanding(now, allowed);
    for (const [index, { endpoint }] of this.members.entries()) this.#loads[index] = endpoint.pressure;
    this.#ring ??= buildRing(this.members.map(({ endpoint }) => endpoint.key));
    const longest = this.#longestQueue(allowed);
    const short = (index: number): boolean => allowed(index) && (this.members[index]?.endpoint.waiting ?? 0) <= longest;
    return pickBounded(this.#ring, key, this.#loads, short);
  }

  /** How many requests may wait for their first byte where one more is sent for the sake of its prefix. */
  #longestQueue(allowed: (index: number) => boolean): number {
    let least = Infinity;
    for (const [index, { endpoint }] of this.members.entries()) {
      if (allowed(index) && endpoint.waiting < least) least = endpoint.waiting;
    }
    return least < LONG_QUEUE ? least + QUEUE_SLACK : least;
  }

  #leastOutstanding(now: number, allowed: (index: number) => boolean): number {
    const count = this.members.length;
    this.#turn = (this.#turn + 1) % count;
    let best = -1;
    let least = Infinity;
    // Starting elsewhere every time spreads the ties.
    for (let step = 0; step < count; step += 1) {
      const index = (this.#turn + step) % count;
      if (!allowed(index)) continue;
      const endpoint = this.members[index]?.endpoint;
      const load = (endpoint?.pressure ?? 0) + (fresh(endpoint, now)?.waiting ?? 0);
      if (load < least) {
        least = load;
        best = index;
      }
    }
    return best;
  }
}

function fresh(endpoint: Endpoint | undefined, now: number): Endpoint['load'] {
  const load = endpoint?.load;
  return load !== undefined && now - load.at <= FRESH_MS ? load : undefined;
}

function saturated(endpoint: Endpoint | undefined, now: number): boolean {
  const load = fresh(endpoint, now);
  return load !== undefined && (load.waiting >= SATURATED_QUEUE || load.kvUsage >= SATURATED_KV);
}
