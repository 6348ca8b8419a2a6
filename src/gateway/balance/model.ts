import type { Clock } from '../../lib/clock.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import type { ScaleSpec } from '../../resources/model-servers/scale.ts';
import type { FallbackSpec, Probe, ServedModel, ServerSpec } from '../discovery/types.ts';
import type { Endpoint } from '../endpoint.ts';
import { freshLoad } from './load-metrics.ts';
import { buildRing, pickBounded, type Ring } from './ring.ts';

/** An endpoint that serves a model, and what the model is called there. */
export interface Member {
  endpoint: Endpoint;
  upstreamModel: string;
  /** Tokens, as this endpoint reports it. */
  contextLength?: number | undefined;
}

/** A server of a model whose workload may have no replica. */
export interface Sleeper {
  server: ServerSpec;
  scale: ScaleSpec;
  /** Seconds that earlier starts took. */
  startSeconds: number | undefined;
}

const NO_SLEEPERS: readonly Sleeper[] = [];

/** The endpoint picker of the Gateway API inference extension calls a server saturated from here on. */
const SATURATED_QUEUE = 5;
const SATURATED_KV = 0.95;
/**
 * A call may wait behind this many more requests than elsewhere for the sake of its cached prefix, and behind none once
 * LONG_QUEUE requests wait at every endpoint. Of the values tried in the simulation, these have the shortest tail from
 * idle to twice the capacity of the engines.
 */
const QUEUE_SLACK = 2;
const LONG_QUEUE = 4;

/** One model: the endpoints that serve it, and the choice among them. */
export class Model {
  readonly name: string;
  readonly members: readonly Member[];
  facts: ServedModel | undefined;
  /** Of any endpoint, also of one that is gone: for the model list. */
  probe: Probe | undefined;
  /** Servers that a call may bring up. */
  sleepers = NO_SLEEPERS;
  /** Of a million tokens. Undefined: they cost nothing. */
  prices: TokenPrices | undefined;
  /** Where calls go that it cannot take. */
  fallback: FallbackSpec | undefined;
  /** Its servers are outside the cluster. */
  isOutside = false;
  /** Its servers, as one text: models of the same servers have one line of calls that wait. */
  readonly servers: string;
  readonly #clock: Clock;
  readonly #loads: number[];
  #ring: Ring | undefined;
  #turn = 0;

  constructor(name: string, members: readonly Member[], clock: Clock) {
    this.name = name;
    this.members = members;
    this.#clock = clock;
    this.servers = serversOf(members);
    this.#loads = members.map(() => 0);
  }

  describe(facts: ServedModel | undefined, probe: Probe | undefined, sleepers = NO_SLEEPERS): void {
    this.facts = facts;
    this.probe = probe;
    this.sleepers = sleepers;
  }

  hasMembers(members: readonly Member[]): boolean {
    return (
      members.length === this.members.length &&
      serversOf(members) === this.servers &&
      members.every(({ endpoint, upstreamModel, contextLength }, index) => {
        const mine = this.members[index];
        return (
          mine?.endpoint === endpoint && mine.upstreamModel === upstreamModel && mine.contextLength === contextLength
        );
      })
    );
  }

  /** Every tenant may call it. */
  get isShared(): boolean {
    return (
      this.members.some(({ endpoint }) => endpoint.isShared) ||
      this.sleepers.some(({ server }) => server.sharedRank !== undefined)
    );
  }

  get readyCount(): number {
    return this.members.filter(({ endpoint }) => endpoint.available).length;
  }

  /** Requests of all callers at the servers, as these said in the last seconds; undefined when none says. */
  get load(): { running: number; waiting: number; tokensPerSecond: number | undefined } | undefined {
    const now = this.#clock.monotonic();
    const fresh = this.members.flatMap(({ endpoint }) => {
      const load = endpoint.available ? freshLoad(endpoint, now) : undefined;
      return load === undefined ? [] : [{ ...load, speed: endpoint.tokensPerSecond }];
    });
    if (fresh.length === 0) return undefined;
    const sum = (one: 'running' | 'waiting'): number => fresh.reduce((total, load) => total + load[one], 0);
    const speeds = fresh.flatMap(({ speed }) => speed ?? []);
    const tokensPerSecond = speeds.length === 0 ? undefined : speeds.reduce((total, speed) => total + speed, 0);
    return { running: sum('running'), waiting: sum('waiting'), tokensPerSecond };
  }

  /**
   * Chooses where to send a request: with a key (a hash of what the prefix cache depends on) by consistent hashing with
   * bounded loads, else the endpoint with the fewest requests outstanding. Servers whose own fresh metrics call them
   * saturated come last. Endpoints in `tried` already got this request of the tenant.
   *
   * @param withRoom only those that have room for one more
   */
  pick(key: number | undefined, tried: readonly Endpoint[], tenant: string, withRoom = false): Member | undefined {
    const usable = (index: number): boolean => {
      const endpoint = this.members[index]?.endpoint;
      if (endpoint === undefined || !endpoint.available || (withRoom && !endpoint.hasRoom)) return false;
      return endpoint.breaker.permits(tenant) && !tried.includes(endpoint);
    };
    if (this.members.length <= 1) return usable(0) ? this.members[0] : undefined;
    const now = this.#clock.monotonic();
    const unsaturated = (index: number): boolean => usable(index) && !saturated(this.members[index]?.endpoint, now);
    const index = this.#choose(key, now, unsaturated);
    return this.members[index < 0 ? this.#choose(key, now, usable) : index];
  }

  /** Milliseconds until the tenant may try an available endpoint again, undefined when there is none. */
  waitMs(tenant: string): number | undefined {
    const waits = this.members
      .filter(({ endpoint }) => endpoint.available)
      .map(({ endpoint }) => endpoint.breaker.waitMs(tenant));
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

  /** The longest queue of requests without a first byte that one more may join for the sake of its prefix. */
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
    // Each call starts at another endpoint, which spreads ties.
    for (let step = 0; step < count; step += 1) {
      const index = (this.#turn + step) % count;
      if (!allowed(index)) continue;
      const endpoint = this.members[index]?.endpoint;
      const load = (endpoint?.pressure ?? 0) + (freshLoad(endpoint, now)?.waiting ?? 0);
      if (load < least) {
        least = load;
        best = index;
      }
    }
    return best;
  }
}

function serversOf(members: readonly Member[]): string {
  return [...new Set(members.map(({ endpoint }) => endpoint.server))].toSorted().join();
}

function saturated(endpoint: Endpoint | undefined, now: number): boolean {
  const load = freshLoad(endpoint, now);
  return load !== undefined && (load.waiting >= SATURATED_QUEUE || load.kvUsage >= SATURATED_KV);
}
