import type { Principal } from '../access/principal.ts';
import type { Clock } from '../lib/clock.ts';
import type { MinuteCounter } from '../runtime/counter.ts';

export interface Denied {
  message: string;
  retryAfterMs: number;
}

/** Tokens set aside for a call until its real usage is known. */
export interface Reservation {
  /** Replaces the estimate by the real usage. */
  replace(tokens: number): Promise<void>;
}

const CONCURRENCY_RETRY_MS = 1000;

const NO_RESERVATION: Reservation = { replace: () => Promise.resolve() };

/** The limits of API keys: requests and tokens per minute, and calls under way. */
export class KeyLimiter {
  readonly #requests: MinuteCounter;
  readonly #tokens: MinuteCounter;
  readonly #clock: Clock;
  /** Calls under way by key id. A key without any has no entry. */
  readonly #underWay = new Map<string, number>();

  constructor(requests: MinuteCounter, tokens: MinuteCounter, clock: Clock) {
    this.#requests = requests;
    this.#tokens = tokens;
    this.#clock = clock;
  }

  /** Counts a call as under way. When it is not denied, the caller calls `leave` once. */
  enter({ keyId, limits }: Principal): Denied | undefined {
    const count = this.#underWay.get(keyId) ?? 0;
    const max = limits?.concurrentRequests;
    if (max !== undefined && count >= max) {
      return {
        message: `This API key may have ${max} requests under way at once. Wait for one to finish.`,
        retryAfterMs: CONCURRENCY_RETRY_MS,
      };
    }
    this.#underWay.set(keyId, count + 1);
    return undefined;
  }

  leave({ keyId }: Principal): void {
    const count = (this.#underWay.get(keyId) ?? 1) - 1;
    if (count <= 0) this.#underWay.delete(keyId);
    else this.#underWay.set(keyId, count);
  }

  async countRequest({ keyId, limits }: Principal): Promise<Denied | undefined> {
    const max = limits?.requestsPerMinute;
    if (max === undefined) return undefined;
    const { total, resetMs } = await this.#requests.add(keyId, 1);
    if (total <= max) return undefined;
    return { message: `This API key may make ${max} requests per minute. Try again later.`, retryAfterMs: resetMs };
  }

  /**
   * Sets the estimated tokens of a call aside: calls that begin together cannot all pass a limit that one of them uses
   * up. The real usage replaces the estimate. When it comes in a later minute, it counts in full there.
   */
  async reserveTokens({ keyId, limits }: Principal, estimate: number): Promise<Denied | Reservation> {
    const max = limits?.tokensPerMinute;
    if (max === undefined) return NO_RESERVATION;
    const addedAt = this.#clock.monotonic();
    const { total, resetMs } = await this.#tokens.add(keyId, estimate);
    const replace = async (tokens: number): Promise<void> => {
      const counted = this.#clock.monotonic() < addedAt + resetMs ? estimate : 0;
      if (tokens !== counted) await this.#tokens.add(keyId, tokens - counted);
    };
    if (total - estimate < max) return { replace };
    await replace(0);
    return { message: `This API key may use ${max} tokens per minute. Try again later.`, retryAfterMs: resetMs };
  }
}
