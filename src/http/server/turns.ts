import { getPrincipal } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Step } from '../interface/step.ts';

/** A tenant counts as active for this long after its last request, and at most twice as long. */
const ACTIVE_MS = 100;

/** Requests of one tenant that wait, in order. */
type Line = (() => void)[];

/**
 * Lets tenants begin their requests in turns. While several are active, each begins one request in a round of the event
 * loop, so a tenant who sends without a pause does not fill the rounds of the others. A tenant who is alone never waits.
 */
export class Turns {
  readonly #clock: Clock;
  /** Tenants who began a request in this round. */
  readonly #began = new Set<string>();
  readonly #lines = new Map<string, Line>();
  #active = new Set<string>();
  #activeBefore = new Set<string>();
  #changedAt = 0;
  #isRoundEnding = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `begin` when it is the tenant's turn, which may be at once. */
  take(tenant: string, begin: () => void): void {
    const line = this.#lines.get(tenant);
    if (line !== undefined) return void line.push(begin);
    if (this.#isAlone(tenant)) return begin();
    this.#endRound();
    if (this.#began.has(tenant)) return void this.#lines.set(tenant, [begin]);
    this.#began.add(tenant);
    begin();
  }

  #isAlone(tenant: string): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#changedAt >= ACTIVE_MS) {
      this.#activeBefore = this.#active;
      this.#active = new Set();
      this.#changedAt = now;
    }
    this.#active.add(tenant);
    return this.#active.size === 1 && this.#activeBefore.size === Number(this.#activeBefore.has(tenant));
  }

  #endRound(): void {
    if (this.#isRoundEnding) return;
    this.#isRoundEnding = true;
    setImmediate(() => {
      this.#isRoundEnding = false;
      this.#began.clear();
      if (this.#lines.size > 0) this.#endRound();
      // Whoever begins may ask for the next turn, which is not in this round.
      const lines = [...this.#lines];
      for (const [tenant, line] of lines) {
        const begin = line.shift();
        if (line.length === 0) this.#lines.delete(tenant);
        this.#began.add(tenant);
        begin?.();
      }
    });
  }
}

/** Lets the tenants of requests with an accepted key take turns. */
export function takeTurns(turns: Turns): Step {
  return (request, response, next) => {
    turns.take(getPrincipal(request).namespace, () => {
      if (!response.closed) next();
    });
  };
}
