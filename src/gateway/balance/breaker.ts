/** How much one failure counts: a broken connection says more about the server than an answer it chose to give. */
export const FAILURE_WEIGHT = { connection: 1 / 3, unavailable: 1 / 5, error: 1 / 10 } as const;
export type FailureKind = keyof typeof FAILURE_WEIGHT;

const OPEN_MS = 1000;
const OPEN_MAX_MS = 30_000;
const RETRY_AFTER_MAX_MS = 60_000;

/**
 * Circuit breaker of one endpoint. Closed until failures in a row weigh 1; then open for 1 s, doubling to 30 s while
 * trials fail; then half-open, one trial at a time: until it tells something, at most 30 s. A server that names a
 * Retry-After is left alone until then (at most 60 s) without counting as broken.
 */
export class Breaker {
  readonly #now: () => number;
  #weight = 0;
  #openings = 0;
  #openUntil = 0;
  #restUntil = 0;
  #trialUntil = 0;

  /** @param now milliseconds, monotonic */
  constructor(now: () => number) {
    this.#now = now;
  }

  get state(): 'closed' | 'open' | 'half-open' {
    if (this.#weight < 1) return 'closed';
    return this.#now() < this.#openUntil ? 'open' : 'half-open';
  }

  /** Whether a request may be sent now. */
  get permits(): boolean {
    if (this.#restUntil > 0 && this.#now() < this.#restUntil) return false;
    if (this.#weight < 1) return true;
    return this.#now() >= Math.max(this.#openUntil, this.#trialUntil);
  }

  /** Milliseconds until a request may be sent, 0 when one may be sent now. */
  get waitMs(): number {
    const until = Math.max(this.#restUntil, this.#weight < 1 ? 0 : this.#openUntil);
    return Math.max(0, until - this.#now());
  }

  /**
   * Every request that is sent begins here; in the half-open state it is the trial.
   *
   * @returns when it began, for `fail`
   */
  begin(): number {
    const now = this.#now();
    if (this.#weight >= 1) this.#trialUntil = now + OPEN_MAX_MS;
    return now;
  }

  succeed(): void {
    this.#weight = 0;
    this.#openings = 0;
    this.#trialUntil = 0;
  }

  /** @param begunAt what `begin` returned */
  fail(kind: FailureKind, begunAt: number): void {
    const wasOpen = this.#weight >= 1;
    this.#weight = Math.min(1, this.#weight + FAILURE_WEIGHT[kind] + 1e-9);
    // Requests sent before it opened report late: they must not prolong it.
    if (this.#weight < 1 || (wasOpen && begunAt < this.#openUntil)) return;
    this.#trialUntil = 0;
    this.#openUntil = this.#now() + Math.min(OPEN_MAX_MS, OPEN_MS * 2 ** Math.min(this.#openings, 10));
    this.#openings += 1;
  }

  /** Others may try too: the request goes well so far, or ended without telling anything (the client left). */
  release(): void {
    this.#trialUntil = 0;
  }

  rest(ms: number): void {
    this.#restUntil = this.#now() + Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS);
  }
}
