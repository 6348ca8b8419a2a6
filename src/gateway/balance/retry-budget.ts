const RATIO = 0.2;
const RESERVE = 10;
const MAX = 100;

/** Bounds retries to a fifth of the calls and a small reserve: a failing model does not get three times the load. */
export class RetryBudget {
  #tokens = RESERVE;

  /** Called once per call. */
  earn(): void {
    this.#tokens = Math.min(MAX, this.#tokens + RATIO);
  }

  /** @returns whether the call may be sent again */
  spend(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
