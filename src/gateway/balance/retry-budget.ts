/** Resends are at most a fifth of the requests, beyond a small reserve: a pool that fails wholly is not hit thrice. */
const RATIO = 0.2;
const RESERVE = 10;
const MAX = 100;

export class RetryBudget {
  #tokens = RESERVE;

  earn(): void {
    this.#tokens = Math.min(MAX, this.#tokens + RATIO);
  }

  spend(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
