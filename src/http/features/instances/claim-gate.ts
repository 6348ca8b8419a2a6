import type { Clock } from '../../../lib/clock.ts';
import { FairShares } from '../../../lib/shares.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { overloaded } from '../../interface/errors/busy.ts';

/** A tenant may be inside at most twice as often as there is room left: two thirds of the width when it is alone. */
const FACTOR = 2;
/** Requests that wait, of all tenants and of one, which gets a quarter when it is alone. */
const MOST_WAITING = 1024;
const MOST_WAITING_PER_TENANT = 256;
const WAITING_FACTOR = 1 / 3;

/** Requests of one tenant that wait, in order. */
type Line = Set<() => void>;

/**
 * Lets a bounded number of requests try for a place at a time; the others wait, each tenant in a line of its own.
 * Without it a crowd that wants the last places would cost the API server writes in vain: a request that waits here sees
 * first what is left. The lines take turns, and room is always left for a tenant who is not inside yet: a tenant whose
 * requests take long holds up no other.
 */
export class ClaimGate {
  readonly #clock: Clock;
  readonly #inside: FairShares;
  readonly #waiting = new FairShares(MOST_WAITING, WAITING_FACTOR);
  /** By tenant; whose turn is next stands first. */
  readonly #lines = new Map<string, Line>();

  /** @param width requests */
  constructor(width: number, clock: Clock) {
    this.#clock = clock;
    this.#inside = new FairShares(width, FACTOR);
  }

  /**
   * Resolves with the function that leaves again, or with undefined after the timeout or when the signal aborts.
   * @throws ApiError too_many_at_once, overloaded when too many wait
   */
  async enter(
    tenant: string,
    { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
  ): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    const isFirst = !this.#lines.has(tenant);
    const entered = (isFirst && this.#admit(tenant)) || (await this.#wait(tenant, timeoutMs, signal));
    return entered ? () => this.#leave(tenant) : undefined;
  }

  #admit(tenant: string): boolean {
    return this.#inside.take(tenant, 1) === 'taken';
  }

  #leave(tenant: string): void {
    this.#inside.give(tenant, 1);
    let next = this.#next();
    while (next !== undefined) {
      next();
      next = this.#next();
    }
  }

  /** Admits the first request of the next tenant who may enter. */
  #next(): (() => void) | undefined {
    for (const [tenant, line] of this.#lines) {
      const [first] = line;
      if (first === undefined || !this.#admit(tenant)) continue;
      this.#lines.delete(tenant);
      this.#lines.set(tenant, line);
      return first;
    }
    return undefined;
  }

  #wait(tenant: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const line = this.#queue(tenant);
    return new Promise((resolve) => {
      const finish = (entered: boolean): void => {
        line.delete(admit);
        if (line.size === 0) this.#lines.delete(tenant);
        this.#waiting.give(tenant, 1);
        cancel();
        signal.removeEventListener('abort', giveUp);
        resolve(entered);
      };
      const admit = (): void => finish(true);
      const giveUp = (): void => finish(false);
      const cancel = this.#clock.setTimeout(giveUp, timeoutMs);
      signal.addEventListener('abort', giveUp, { once: true });
      line.add(admit);
    });
  }

  /** The line of the tenant, with room for one more. */
  #queue(tenant: string): Line {
    const taken = this.#waiting.take(tenant, 1, MOST_WAITING_PER_TENANT);
    if (taken === 'all-full') throw overloaded('requests that wait for a place');
    if (taken === 'owner-full') {
      const message = `${MOST_WAITING_PER_TENANT} requests of this tenant wait for a place. Wait for one to end.`;
      throw new ApiError('too_many_at_once', message, { retryAfterSeconds: 5 });
    }
    const line: Line = this.#lines.get(tenant) ?? new Set();
    this.#lines.set(tenant, line);
    return line;
  }
}
