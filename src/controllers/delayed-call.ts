import type { Clock } from '../lib/clock.ts';

/** A call that follows its first request after a delay. Requests in between ask for the same call. */
export class DelayedCall {
  readonly #clock: Clock;
  readonly #call: () => void;
  readonly #delayMs: number;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, delayMs: number, call: () => void) {
    this.#clock = clock;
    this.#delayMs = delayMs;
    this.#call = call;
  }

  request(): void {
    this.#cancel ??= this.#clock.setTimeout(() => {
      this.#cancel = undefined;
      this.#call();
    }, this.#delayMs);
  }

  cancel(): void {
    this.#cancel?.();
  }
}
