import type { Clock } from '../lib/clock.ts';

/** Milliseconds after which an answer is slow. Valkey takes one or two, and a busy event loop may hear of it late. */
const SLOW_MS = 100;
/** Milliseconds between an answer that was slow and the next look. */
const REST_MS = 1_000;

/** The part was slow a moment ago. */
class SlowError extends Error {
  override readonly name = 'SlowError';
}

/**
 * Spares callers a part that is slow. After one slow answer all go without; the question of one of them is asked aside
 * each second, and when that is answered soon, all ask again.
 */
export class SlowGuard {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #changed: (isSlow: boolean) => void;
  /** When to look, monotonic milliseconds; undefined while the part is quick. */
  #nextLook: number | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>, changed: (isSlow: boolean) => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Rejects with SlowError, or with what `question` rejects with. */
  async ask<T>(question: () => Promise<T>): Promise<T> {
    if (this.#nextLook !== undefined) {
      if (this.#clock.monotonic() >= this.#nextLook) void this.#look(question);
      throw new SlowError('The part answered slowly a moment ago.');
    }
    const begun = this.#clock.monotonic();
    try {
      return await question();
    } finally {
      if (this.#isSlowSince(begun)) {
        if (this.#nextLook === undefined) this.#changed(true);
        this.#rest();
      }
    }
  }

  async #look(question: () => Promise<unknown>): Promise<void> {
    this.#nextLook = Infinity;
    const begun = this.#clock.monotonic();
    const isAnswered = await question().then(
      () => true,
      () => false,
    );
    if (!isAnswered || this.#isSlowSince(begun)) return this.#rest();
    this.#nextLook = undefined;
    this.#changed(false);
  }

  #isSlowSince(begun: number): boolean {
    return this.#clock.monotonic() - begun > SLOW_MS;
  }

  #rest(): void {
    this.#nextLook = this.#clock.monotonic() + REST_MS;
  }
}
