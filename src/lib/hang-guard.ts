import type { Clock } from './clock.ts';

/** Milliseconds. */
const REST_MS = 5_000;
const TIMEOUT = /time(?:d)?_?out/i;

/** The part hangs, as another call has found. */
export class HangingError extends Error {
  override readonly name = 'HangingError';
}

/**
 * Spares callers the wait for a part that hangs. After a call without an answer in time, others fail at once, but for one
 * every five seconds; when that is answered, be it with an error, all are let through again.
 */
export class HangGuard {
  readonly #clock: Clock;
  /** When the next call may try, monotonic milliseconds; undefined while the part answers. */
  #nextTry: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Rejects with HangingError, or with what `call` rejects with. */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    if (this.#nextTry !== undefined) {
      if (this.#clock.monotonic() < this.#nextTry) throw new HangingError('The part did not answer a moment ago.');
      // Nobody else tries while this call waits.
      this.#nextTry = Infinity;
    }
    try {
      const answer = await call();
      this.#nextTry = undefined;
      return answer;
    } catch (error) {
      this.#nextTry = isTimeout(error) ? this.#clock.monotonic() + REST_MS : undefined;
      throw error;
    }
  }
}

/** Whether time ran out: as AbortSignal.timeout, undici, the system or a library that wraps one of them says it. */
function isTimeout(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return TIMEOUT.test(error.name) || TIMEOUT.test(code) || isTimeout(error.cause);
}
