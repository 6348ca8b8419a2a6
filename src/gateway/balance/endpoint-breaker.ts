import type { Logger } from 'pino';
import type { Clock } from '../../lib/clock.ts';
import { Breaker, FAILURE_WEIGHT, type FailureKind } from './breaker.ts';

/** Milliseconds between two lines that say that the same server is out. */
const QUIET_MS = 60_000;

/** Told why a server is to get no calls, each time that its breaker opens for all; `undefined` once it answers again. */
export type OnBreak = (why: FailureKind | undefined) => void;

/** Logs when a server is taken out for all callers and when it is back: two lines a minute at most. */
export function tellBreaks(log: Logger, clock: Clock, fields: object): OnBreak {
  let isOut = false;
  let toldAt = -QUIET_MS;
  return (why) => {
    if (why === undefined) {
      if (isOut) log.info(fields, 'Model server answers calls again');
      isOut = false;
      return;
    }
    const now = clock.monotonic();
    if (isOut || now - toldAt < QUIET_MS) return;
    log.warn({ ...fields, why }, 'Model server gets one call at a time, because those before failed');
    isOut = true;
    toldAt = now;
  };
}

/** What the failures of one tenant's calls may weigh for all: it takes the calls of two to open the common breaker. */
const TENANT_MAX = 0.5;
/** Tenants with a breaker of their own. The one that failed first is forgotten beyond this. */
const MAX_TENANTS = 1000;

/**
 * The breakers of one endpoint: one for all callers, and one for each tenant whose calls failed. A failure that a
 * request can cause, such as a crash, counts in full against its tenant and only in part for the others. So what one
 * tenant sends cannot take a server away from another. A failure that no request can cause counts for all.
 */
export class EndpointBreaker {
  readonly #clock: Clock;
  readonly #onBreak: OnBreak;
  readonly #common: Breaker;
  readonly #own = new Map<string, Breaker>();
  /** What each tenant has added to the weight of the common breaker since the last success. */
  readonly #added = new Map<string, number>();

  /** `onBreak` is told what happens to the breaker for all callers. */
  constructor(clock: Clock, onBreak: OnBreak = () => undefined) {
    this.#clock = clock;
    this.#onBreak = onBreak;
    this.#common = new Breaker(clock);
  }

  get state(): Breaker['state'] {
    return this.#common.state;
  }

  /** Whether a request of the tenant may be sent now. */
  permits(tenant: string): boolean {
    return this.#common.permits && (this.#own.get(tenant)?.permits ?? true);
  }

  /** Milliseconds until the tenant may send a request, 0 when it may now. */
  waitMs(tenant: string): number {
    return Math.max(this.#common.waitMs, this.#own.get(tenant)?.waitMs ?? 0);
  }

  /** Call before every request. Returns when it began, for `fail`. */
  begin(tenant: string): number {
    this.#own.get(tenant)?.begin();
    return this.#common.begin();
  }

  succeed(tenant: string): void {
    if (this.#common.succeed()) this.#onBreak(undefined);
    if (this.#added.size > 0) this.#added.clear();
    const own = this.#own.get(tenant);
    if (own?.isResting === true) own.succeed();
    else if (own !== undefined) this.#own.delete(tenant);
  }

  /** A failure that no request can cause: the server cannot be reached, or answers nobody. */
  fail(kind: FailureKind, begunAt: number): void {
    if (this.#common.fail(FAILURE_WEIGHT[kind], begunAt)) this.#onBreak(kind);
  }

  /** A failure that the request of the tenant may have caused. */
  failFor(tenant: string, kind: FailureKind, begunAt: number): void {
    const weight = FAILURE_WEIGHT[kind];
    this.#ownOf(tenant).fail(weight, begunAt);
    const added = this.#added.get(tenant) ?? 0;
    const share = Math.min(weight, TENANT_MAX - added);
    this.#added.set(tenant, added + share);
    // A trial that fails for a tenant that has failed before says nothing new: let another tenant's call be the trial.
    if (share <= 0) this.#common.release();
    else if (this.#common.fail(share, begunAt)) this.#onBreak(kind);
  }

  /** Lets other requests try, as {@link Breaker.release} does. */
  release(tenant: string): void {
    this.#common.release();
    this.#own.get(tenant)?.release();
  }

  /** The server is to get no request for so long. */
  rest(ms: number): void {
    this.#common.rest(ms);
  }

  /** The server asked for a pause when it got a request of the tenant. Asked by two tenants, it gets one from all. */
  restFor(tenant: string, ms: number): void {
    const isAsking = [...this.#own].some(([name, own]) => name !== tenant && own.isResting);
    this.#ownOf(tenant).rest(ms);
    if (isAsking) this.#common.rest(ms);
  }

  #ownOf(tenant: string): Breaker {
    let own = this.#own.get(tenant);
    if (own !== undefined) return own;
    own = new Breaker(this.#clock);
    this.#own.set(tenant, own);
    const [oldest] = this.#own.keys();
    if (this.#own.size > MAX_TENANTS && oldest !== undefined) this.#own.delete(oldest);
    return own;
  }
}
