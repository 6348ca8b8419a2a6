import { Lru } from '../../lib/lru.ts';

const RATIO = 0.2;
const RESERVE = 10;
const MAX = 100;
/** Pairs of tenant and model. One that is forgotten starts again with its reserve. */
const MAX_BUDGETS = 4096;

/** Bounds retries to a fifth of the calls and a small reserve: a failing model does not get three times the load. */
class RetryBudget {
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

/** A retry budget for each model and tenant: one that fails uses up no other's. */
export class RetryBudgets {
  readonly #budgets = new Lru<string, RetryBudget>(MAX_BUDGETS);

  of(tenant: string, model: string): RetryBudget {
    const key = `${tenant}/${model}`;
    let budget = this.#budgets.get(key);
    if (budget === undefined) this.#budgets.set(key, (budget = new RetryBudget()));
    return budget;
  }
}
