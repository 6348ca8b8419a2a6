import { Breaker } from './balance/breaker.ts';
import { hash32 } from './balance/hash.ts';
import type { Probe, ServerSpec, Target } from './discovery/types.ts';

/** What a model server's own metrics said last. */
export interface ServerLoad {
  waiting: number;
  running: number;
  /** Share of the KV cache in use, 0 to 1. */
  kvUsage: number;
  /** Milliseconds, monotonic: when it was read. */
  at: number;
}

/** One address that requests may be sent to, with what this process knows of it. Lives as long as the address. */
export class Endpoint {
  readonly key: string;
  /** Opaque name for headers and logs: says which endpoint it was, not where it is. */
  readonly name: string;
  readonly breaker: Breaker;
  origin: string;
  server: ServerSpec;
  available: boolean;
  probe: Probe | undefined;
  load: ServerLoad | undefined;
  /** Requests of this process under way. */
  inFlight = 0;
  /** Those of them that stream and have no first byte yet: they queue or fill the cache, which costs most. */
  waiting = 0;
  /** It answered before: connections to it may be kept alive, and may have died meanwhile. */
  answered = false;

  constructor(target: Target, now: () => number) {
    this.key = target.key;
    this.name = `ep-${hash32(target.key).toString(36).padStart(7, '0')}`;
    this.breaker = new Breaker(now);
    this.origin = target.origin;
    this.server = target.server;
    this.available = target.available;
  }

  /** What the balancer compares: a request without its first byte counts twice. */
  get pressure(): number {
    return this.inFlight + this.waiting;
  }

  update(target: Target, probe: Probe | undefined): void {
    this.origin = target.origin;
    this.server = target.server;
    this.available = target.available;
    this.probe = probe;
  }
}
