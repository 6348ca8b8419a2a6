import type { Clock } from '../../lib/clock.ts';

/**
 * How much one failure counts. A broken connection says more against a server than an error that it answered. A server
 * that is known to hang needs no second failure.
 */
export const FAILURE_WEIGHT = { hung: 1, connection: 1 / 3, unavailable: 1 / 5, error: 1 / 10 } as const;
export type FailureKind = keyof typeof FAILURE_WEIGHT;

const OPEN_MS = 1000;
const OPEN_MAX_MS = 30_000;
const RETRY_AFTER_MAX_MS = 60_000;

/**
 * Circuit breaker of one endpoint. It is closed until failures in a row weigh 1. It then opens for 1 s, doubling to
 * 30 s while trials fail. After that it is half-open: one trial at a time, until the trial has a result or 30 s pass. A
 * server that sends Retry-After gets no request until then, for 60 s at most, and does not count as broken.
 */
export class Breaker {
  readonly #clock: Clock;
  #weight = 0;
  #openings = 0;
  #openUntil = 0;
  #restUntil = 0;
  #trialUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get state(): 'closed' | 'open' | 'half-open' {
    if (this.#weight < 1) return 'closed';
    return this.#clock.monotonic() < this.#openUntil ? 'open' : 'half-open';
  }

  /** Whether a request may be sent now. */
  get permits(): boolean {
    if (this.#restUntil > 0 && this.isResting) return false;
    if (this.#weight < 1) return true;
    return this.#clock.monotonic() >= Math.max(this.#openUntil, this.#trialUntil);
  }

  get isResting(): boolean {
    return this.#restUntil > this.#clock.monotonic();
  }

  /** Milliseconds until a request may be sent, 0 when one may be sent now. */
  get waitMs(): number {
    const until = Math.max(this.#restUntil, this.#weight < 1 ? 0 : this.#openUntil);
    return Math.max(0, until - this.#clock.monotonic());
  }

  /** Call before every request: a half-open breaker takes it as the trial. Returns when it began, for `fail`. */
  begin(): number {
    const now = this.#clock.monotonic();
    if (this.#weight >= 1) this.#trialUntil = now + OPEN_MAX_MS;
    return now;
  }

  /** Returns whether this closes the breaker. */
  succeed(): boolean {
    const wasOpen = this.#weight >= 1;
    this.#weight = 0;
    this.#openings = 0;
    this.#trialUntil = 0;
    return wasOpen;
  }

  /**
   * Returns whether this opens the breaker, be it again.
   * @param weight of the failure: 1 opens the breaker
   */
  fail(weight: number, begunAt: number): boolean {
    const wasOpen = this.#weight >= 1;
    this.#weight = Math.min(1, this.#weight + weight + 1e-9);
    // A request that was sent before the breaker opened may fail later and must not keep it open for longer.
    if (this.#weight < 1 || (wasOpen && begunAt < this.#openUntil)) return false;
    this.#trialUntil = 0;
    this.#openUntil = this.#clock.monotonic() + Math.min(OPEN_MAX_MS, OPEN_MS * 2 ** Math.min(this.#openings, 10));
    this.#openings += 1;
    return true;
  }

  /** Lets other requests try: this one goes well so far, or ended without a result because the client left. */
  release(): void {
    this.#trialUntil = 0;
  }

  rest(ms: number): void {
    this.#restUntil = this.#clock.monotonic() + Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS);
  }
}
