import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../lib/clock.ts';
import type { Priority } from '../../resources/api-key.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import type { Member, Model } from '../balance/model.ts';
import type { Prompt } from '../balance/prefill.ts';
import type { Endpoint } from '../endpoint.ts';
import { WaitingPlaces } from '../limits/waiting-places.ts';
import { type Charge, type Entry, FairLine } from './fair-line.ts';
import { Pace } from './pace.ts';

/** Why a call waits no longer, or not at all. The message is for the caller. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
  readonly status: 429 | 503;
  readonly retryAfterMs: number;

  constructor(status: 429 | 503, message: string, retryAfterMs: number) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A call that waits for a server with room. */
export interface Waiter {
  readonly tenant: string;
  readonly priority: Priority;
  /** As it is in the catalogue of the tenant. */
  readonly model: Model;
  /** As they were when it was let in: the name of the model at each server by its UID, whose they are, and the price. */
  readonly servers: ReadonlyMap<string, string>;
  readonly isShared: boolean;
  readonly prices: TokenPrices | undefined;
  readonly key: number | undefined;
  /** Endpoints of the model that cannot take it. */
  readonly unable: (model: Model) => Endpoint[];
  readonly prompt: Prompt;
  /** About as many tokens as it is going to take. */
  readonly tokens: number;
  /** Bytes of its body, and of what it continues. */
  readonly bytes: number;
  /** Hands the function that ends the wait at once. */
  readonly onLeave: (leave: (error: Error) => void) => void;
}

/** A call's turn: the endpoint counts it as under way. */
export interface Turn {
  model: Model;
  member: Member;
  charge: Charge;
}

export interface CallQueueDeps {
  /** As the catalogue is now. */
  find: (tenant: string, model: string) => Model | undefined;
  /** Asks servers what they have to do. */
  read: (endpoints: readonly Endpoint[]) => void;
  /** Told how long a call has waited. */
  waited: (model: Model, seconds: number) => void;
  /** Aborts when this replica stops: another one may hold the calls then. */
  stopping: AbortSignal;
  clock: Clock;
}

interface Place {
  readonly waiter: Waiter;
  model: Model;
  /** Both end the wait at once: nobody else finds the call in the line. */
  readonly resolve: (turn: Turn | undefined) => void;
  readonly reject: (error: Error) => void;
}

/** The calls that wait for the same servers. */
interface Line {
  readonly calls: FairLine<Place>;
  readonly pace: Pace;
  /** Cancels the next look at its servers. */
  cancel: (() => void) | undefined;
}

/** How long a call waits. Proxies in front and clients have given up by then. */
const MOST_MS = 120_000;
/** While calls wait, servers are looked at as often. */
const LOOK_MS = 250;
const STOPPING_RETRY_MS = 1000;
const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 600_000;
const CHANGED_RETRY_MS = 1000;

/**
 * Holds calls while all servers of their model have as much as they do well, and gives each server that has room again
 * the call whose turn it is. A call that comes while no other waits for its servers passes by.
 */
export class CallQueue {
  readonly #deps: CallQueueDeps;
  readonly #bounds = new WaitingPlaces();
  /** By the servers of their models. A line without calls is gone. */
  readonly #lines = new Map<string, Line>();
  #cancel: (() => void) | undefined;

  constructor(deps: CallQueueDeps) {
    this.#deps = deps;
    deps.stopping.addEventListener('abort', () => this.#dismiss(stopping), { once: true });
  }

  /** Whether calls wait for these servers, so that another one may not go before them. */
  isWaitedFor({ servers }: Model): boolean {
    return this.#lines.size > 0 && this.#lines.has(servers);
  }

  /** The model of each call that waits. */
  get models(): Model[] {
    return this.#places().map(({ item }) => item.model);
  }

  /** The line in front of a model, as one of the tenant finds it; undefined where nobody waits. */
  lineOf({ servers }: Model, tenant: string): { waiting: number; expectedMs: number | undefined } | undefined {
    const line = this.#lines.get(servers);
    return line && { waiting: line.calls.size, expectedMs: expectedMs(line, tenant, 'normal') };
  }

  /**
   * Waits for the turn of a call. Resolves with undefined when no server of the model takes calls of the tenant any more.
   * Rejects with QueueError when there is no place or the time is over, and with why it left.
   */
  async wait(waiter: Waiter): Promise<Turn | undefined> {
    const { clock, stopping: replica, waited } = this.#deps;
    const { tenant, priority, model, bytes } = waiter;
    if (replica.aborted) throw stopping();
    const known = this.#lines.get(model.servers);
    const expected = known && expectedMs(known, tenant, priority);
    if (expected !== undefined && expected > MOST_MS) throw tooLong(model, expected);
    const { promise, resolve, reject } = Promise.withResolvers<Turn | undefined>();
    const leave = (why: () => Error): void => {
      line.calls.leave(entry);
      reject(why());
    };
    const own = {
      tenant,
      priority,
      bytes,
      displace: () => leave(() => displaced(model, expectedMs(line, tenant, priority))),
    };
    const full = this.#bounds.take(own);
    if (full !== undefined) throw noPlace(model, full, expected);
    const line = known ?? this.#begin(model.servers);
    const since = clock.monotonic();
    const entry = line.calls.join(tenant, priority, {
      waiter,
      model,
      resolve(turn) {
        line.calls.leave(entry);
        resolve(turn);
      },
      reject: (error) => leave(() => error),
    });
    const { item } = entry;
    const cancel = clock.setTimeout(() => leave(() => tookTooLong(model, expectedMs(line, tenant, priority))), MOST_MS);
    waiter.onLeave(item.reject);
    this.#serve(line);
    try {
      return await promise;
    } finally {
      cancel();
      this.#bounds.give(own);
      this.#end(model.servers, line);
      waited(model, (clock.monotonic() - since) / 1000);
    }
  }

  /** A request to this endpoint has ended, or its answer has begun. */
  freed({ server }: Endpoint): void {
    if (this.#lines.size === 0) return;
    for (const [servers, line] of this.#lines) if (servers.includes(server)) this.#serve(line);
  }

  /** There is a new catalogue. */
  changed(): void {
    for (const { item } of this.#places()) {
      const { waiter, model } = item;
      const now = this.#deps.find(waiter.tenant, model.name);
      if (now === undefined || now.members.length === 0) item.resolve(undefined);
      else if (isSame(now, waiter)) item.model = now;
      else item.reject(changed(model));
    }
    this.#serveAll();
  }

  #places(): Entry<Place>[] {
    return [...this.#lines.values()].flatMap(({ calls }) => [...calls.inOrder()]);
  }

  #dismiss(why: () => Error): void {
    for (const { item } of this.#places()) item.reject(why());
  }

  #begin(servers: string): Line {
    const line: Line = { calls: new FairLine<Place>(), pace: new Pace(this.#deps.clock), cancel: undefined };
    this.#lines.set(servers, line);
    this.#cancel ??= this.#deps.clock.setTimeout(this.#look, LOOK_MS);
    return line;
  }

  #end(servers: string, line: Line): void {
    if (line.calls.size > 0 || this.#lines.get(servers) !== line) return;
    line.cancel?.();
    this.#lines.delete(servers);
    if (this.#lines.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  readonly #look = (): void => {
    this.#cancel = this.#deps.clock.setTimeout(this.#look, LOOK_MS);
    const endpoints = this.#places().flatMap(({ item }) => item.model.members.map(({ endpoint }) => endpoint));
    this.#deps.read([...new Set(endpoints)]);
    this.#serveAll();
  };

  #serveAll(): void {
    for (const line of this.#lines.values()) this.#serve(line);
  }

  /** Gives what has room to those whose turn it is. */
  #serve(line: Line): void {
    const { calls, pace } = line;
    let isTrial = false;
    while (!isTrial) {
      const found = this.#next(calls);
      if (found === undefined) return this.#serveLater(line);
      const { entry, member } = found;
      const { model, waiter, resolve } = entry.item;
      member.endpoint.enter(waiter.prompt, true);
      // Whoever tries a server that failed does so before another one is sent there.
      isTrial = member.endpoint.breaker.state !== 'closed';
      pace.happened();
      resolve({ model, member, charge: calls.serve(entry, waiter.tokens) });
    }
  }

  /** Looks again when a server is about to have room. */
  #serveLater(line: Line): void {
    line.cancel?.();
    const [first] = line.calls.inOrder();
    const waits = first?.item.model.members.map(({ endpoint }) => endpoint.roomIn) ?? [];
    const ms = Math.min(...waits.filter((wait) => wait > 0));
    line.cancel = Number.isFinite(ms) ? this.#deps.clock.setTimeout(() => this.#serve(line), ms) : undefined;
  }

  /** The next call for which there is room. Tells those on the way for which there is no server any more. */
  #next(calls: FairLine<Place>): { entry: Entry<Place>; member: Member } | undefined {
    /** Models without room, of each tenant. */
    const full = new Map<Model, string>();
    for (const entry of calls.inOrder()) {
      const { model, waiter } = entry.item;
      const { key, tenant } = waiter;
      const unable = waiter.unable(model);
      if (unable.length === 0 && full.get(model) === tenant) continue;
      const member = model.pick(key, unable, tenant, true);
      if (member !== undefined) return { entry, member };
      if (model.pick(key, unable, tenant) === undefined) entry.item.resolve(undefined);
      else if (unable.length === 0) full.set(model, tenant);
    }
    return undefined;
  }
}

/** Whether a call gets the model that it waits for: one of the same name may be another's, at another price. */
function isSame(now: Model, { servers, isShared, prices }: Waiter): boolean {
  if (now.isShared !== isShared || !isDeepStrictEqual(now.prices, prices)) return false;
  return now.members.some(({ endpoint, upstreamModel }) => servers.get(endpoint.server) === upstreamModel);
}

/** How long one of the tenant and priority would wait that came now; undefined while nobody knows how fast the line is. */
function expectedMs({ calls, pace }: Line, tenant: string, priority: Priority): number | undefined {
  const { everyMs } = pace;
  return everyMs === undefined ? undefined : (calls.ahead(tenant, priority) + 1) * everyMs;
}

function retryAfter(expected: number | undefined): number {
  return Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, expected ?? 0));
}

function noPlace({ name }: Model, what: string, expected: number | undefined): QueueError {
  const message = `All servers of the model '${name}' are busy, and this replica lets at most ${what} wait for them, and keeps room for other namespaces. Try again later.`;
  return new QueueError(429, message, retryAfter(expected));
}

function displaced({ name }: Model, expected: number | undefined): QueueError {
  const message = `All servers of the model '${name}' are busy, and a call of higher priority of your namespace has the place of this one. Try again later.`;
  return new QueueError(429, message, retryAfter(expected));
}

/** By then the line is as long as a call may wait. */
function tooLong({ name }: Model, expected: number): QueueError {
  const message = `All servers of the model '${name}' are busy, and the calls that wait for them take about ${Math.ceil(expected / 1000)} s. Try again later.`;
  return new QueueError(429, message, retryAfter(expected - MOST_MS));
}

function tookTooLong({ name }: Model, expected: number | undefined): QueueError {
  const message = `All servers of the model '${name}' were busy for ${MOST_MS / 1000} s. Try again later.`;
  return new QueueError(429, message, retryAfter(expected));
}

function changed({ name }: Model): QueueError {
  const message = `The servers of the model '${name}' changed while the call waited for them. Send it again.`;
  return new QueueError(503, message, CHANGED_RETRY_MS);
}

function stopping(): QueueError {
  const message = 'This replica of the gateway stops. Try again: another replica answers.';
  return new QueueError(503, message, STOPPING_RETRY_MS);
}
