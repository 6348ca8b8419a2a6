import type { Principal } from './principal.ts';
import type { MinuteCounter } from '../runtime/counter.ts';

/** A limit was reached. */
export interface Denied {
  message: string;
  retryAfterMs: number;
}

/** Tokens set aside for a call until its real usage is known. */
export interface Reservation {
  settle(tokens: number): Promise<void>;
}

const CONCURRENCY_RETRY_MS = 1000;

const NO_RESERVATION: Reservation = { settle: () => Promise.resolve() };

/** The limits of API keys: requests and tokens per minute, and calls under way. */
export class KeyLimiter {
  readonly #requests: MinuteCounter;
  readonly #tokens: MinuteCounter;
  /** Calls under way of the keys that have any: as many entries as calls at most. */
  readonly #underWay = new Map<string, number>();

  constructor(requests: MinuteCounter, tokens: MinuteCounter) {
    this.#requests = requests;
    this.#tokens = tokens;
  }

  /** Takes a place among the key's concurrent calls; every undefined must be followed by one `leave`. */
  enter({ keyId, limits }: Principal): Denied | undefined {
    const count = this.#underWay.get(keyId) ?? 0;
    const max = limits?.concurrentRequests;
    if (max !== undefined && count >= max) {
      return {
        message: `This API key may have ${max} requests under way at once.`,
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
    return { message: `This API key may make ${max} requests per minute.`, retryAfterMs: resetMs };
  }

  /**
   * Sets the estimated tokens of a call aside, so that calls begun together cannot all pass a limit that one of them
   * uses up. The real usage replaces the estimate when it is settled, and counts alone in a later minute.
   */
  async reserveTokens({ keyId, limits }: Principal, estimate: number): Promise<Denied | Reservation> {
    const max = limits?.tokensPerMinute;
    if (max === undefined) return NO_RESERVATION;
    const addedAt = performance.now();
    const { total, resetMs } = await this.#tokens.add(keyId, estimate);
    const settle = async (tokens: number): Promise<void> => {
      const counted = performance.now() < addedAt + resetMs ? estimate : 0;
      if (tokens !== counted) await this.#tokens.add(keyId, tokens - counted);
    };
    if (total - estimate < max) return { settle };
    await settle(0);
    return { message: `This API key may use ${max} tokens per minute.`, retryAfterMs: resetMs };
  }
}
