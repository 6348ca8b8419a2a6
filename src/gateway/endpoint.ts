import type { Dispatcher } from 'undici';
import { Bag } from '../lib/bag.ts';
import { HangGuard } from '../lib/hang-guard.ts';
import { FairShares } from '../lib/shares.ts';
import type { Clock } from '../lib/clock.ts';
import { EndpointBreaker, type OnBreak } from './balance/endpoint-breaker.ts';
import { hash32 } from './balance/hash.ts';
import { Prefill, type Prompt } from './balance/prefill.ts';
import { Window, workOf } from './balance/window.ts';
import type { EngineCredential } from '../resources/model-servers/engine-credential.ts';
import { type Probe, type Target, workloadOf } from './discovery/types.ts';

/** Questions about tokens that a server has at once. A tenant alone may have half. */
const COUNTS = 32;

/** What a model server's metrics said when they were last read. */
export interface ServerLoad {
  waiting: number;
  running: number;
  /** Data-parallel ranks, each of which reads prompts of its own. */
  ranks: number;
  /** Share of the KV cache in use, 0 to 1. */
  kvUsage: number;
  /** Counts up while the engine computes. Absent where no counter of the engine does so all the time. */
  steps?: number | undefined;
  /** Tokens that it has ever written. Absent where the engine does not count them as it writes. */
  written?: number | undefined;
  /** When it was read: milliseconds, monotonic. */
  at: number;
}

/** A counter that went back belongs to a server that was started again. */
function writtenPerSecond(before: ServerLoad | undefined, { written, at }: ServerLoad): number | undefined {
  if (before?.written === undefined || written === undefined) return undefined;
  const rate = ((written - before.written) * 1000) / (at - before.at);
  return rate >= 0 && Number.isFinite(rate) ? rate : undefined;
}

/** One request that was sent to an endpoint and has not ended. Times are milliseconds, monotonic. */
export interface Flight {
  readonly tenant: string;
  readonly begunAt: number;
  readonly isStream: boolean;
  /** An estimate. */
  readonly promptTokens: number;
  /** The first byte of the answer has come. */
  answered: boolean;
  /** Ends the request with this error. */
  giveUp(error: Error): void;
  /** Ends the call, because its tenant may no longer make it. */
  withdraw(): void;
  /** Frees the body. The call is not sent again after this. */
  letGo(): void;
}

/** One address that requests may be sent to, and what this process knows of it. Lives as long as the address. */
export class Endpoint {
  readonly key: string;
  /** Its pod and port. */
  readonly place: string;
  /** Opaque name for headers and logs: tells endpoints apart and hides their addresses. */
  readonly name: string;
  /** That of its Service. */
  readonly namespace: string;
  /** UID of its Service. */
  server: string;
  readonly breaker: EndpointBreaker;
  /** How many requests of this process it may have. */
  readonly window = new Window();
  /** The prompts of this process that it has to read. */
  readonly #prefill = new Prefill();
  readonly #clock: Clock;
  /** For questions about tokens. */
  readonly guard: HangGuard;
  /** Those under way, by tenant: nobody pays for them. */
  readonly counts = new FairShares(COUNTS, 1);
  origin: string;
  available: boolean;
  probe: Probe | undefined;
  /** What the engine asks for. Goes to this address alone. */
  credential: EngineCredential | undefined;
  /** Connections to it, where it is outside the cluster. */
  dispatcher: Dispatcher | undefined;
  /** From where its server may fetch media. */
  mediaHosts: readonly string[];
  /** Tenants of several namespaces may call it. */
  isShared: boolean;
  /** What runs it, where that may scale to zero. */
  workload: string | undefined;
  load: ServerLoad | undefined;
  /** Tokens that it wrote in a second between the last two readings of its metrics. */
  tokensPerSecond: number | undefined;
  /** When `steps` was last seen to have changed. Milliseconds, monotonic. */
  movedAt = 0;
  /** Requests of this process under way. */
  inFlight = 0;
  readonly flights = new Bag<Flight>();
  /** When a byte of any answer last came. */
  heardAt = 0;
  /** When the newest stream began whose answer has begun. */
  newestAnswered = 0;
  /** Those that stream and have no first byte yet. They queue or fill the cache, which costs the engine most. */
  waiting = 0;
  /** It has answered before. Connections to it may be kept alive, and the server may have closed them since. */
  answered = false;

  constructor(target: Target, clock: Clock, onBreak?: OnBreak) {
    this.key = target.key;
    this.place = target.place;
    this.name = `ep-${hash32(target.key).toString(36).padStart(7, '0')}`;
    this.namespace = target.server.namespace;
    this.server = target.server.uid;
    this.#clock = clock;
    this.breaker = new EndpointBreaker(clock, onBreak);
    this.guard = new HangGuard(clock);
    this.origin = target.origin;
    this.available = target.available;
    this.credential = target.credential;
    this.dispatcher = target.dispatcher;
    this.mediaHosts = target.server.mediaHosts ?? [];
    this.isShared = target.server.sharedRank !== undefined;
    this.workload = workloadOf(target.server);
  }

  get isOutside(): boolean {
    return this.dispatcher !== undefined;
  }

  /** What the balancer compares. A request without its first byte counts twice. */
  get pressure(): number {
    return this.inFlight + this.waiting;
  }

  /** One more request of this process may go there. */
  get hasRoom(): boolean {
    return this.roomIn === 0;
  }

  /** Milliseconds until one more may go there, as far as is known: Infinity where only what happens can say. */
  get roomIn(): number {
    if (this.inFlight >= this.window.size) return Infinity;
    // One that says nothing may be many behind one address.
    return this.load?.ranks === 1 ? this.#prefill.roomIn(this.#clock.monotonic()) : 0;
  }

  /** A request goes there. */
  enter(prompt: Prompt, hasWaited = false): void {
    this.inFlight += 1;
    this.#prefill.sent(prompt, this.#clock.monotonic(), hasWaited);
  }

  /** The first byte of its stream has come. */
  begun(prompt: Prompt): void {
    this.#prefill.answered(prompt, this.#clock.monotonic());
  }

  /** It has ended. */
  leave(prompt: Prompt): void {
    this.inFlight -= 1;
    this.#prefill.gone(prompt);
  }

  /** A byte of the answer to this request came at `now`. */
  heard(flight: Flight, now: number): void {
    this.heardAt = now;
    if (flight.answered) return;
    flight.answered = true;
    if (flight.isStream && flight.begunAt > this.newestAnswered) this.newestAnswered = flight.begunAt;
  }

  /** Its metrics were read. */
  measured(load: ServerLoad): void {
    if (load.steps !== this.load?.steps) this.movedAt = load.at;
    this.tokensPerSecond = writtenPerSecond(this.load, load);
    this.load = load;
    this.window.note(load, this.inFlight);
  }

  /** It has no metrics: what it has to do is seen in its answers. */
  watched(now: number): void {
    this.window.note(workOf(this.flights, now), this.inFlight);
  }

  update(target: Target, probe: Probe | undefined): void {
    this.origin = target.origin;
    this.available = target.available;
    this.credential = target.credential;
    this.dispatcher = target.dispatcher;
    this.mediaHosts = target.server.mediaHosts ?? [];
    this.isShared = target.server.sharedRank !== undefined;
    this.workload = workloadOf(target.server);
    this.server = target.server.uid;
    this.probe = probe;
  }
}
