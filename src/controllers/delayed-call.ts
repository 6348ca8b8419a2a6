import type { Clock } from '../lib/clock.ts';

/** A call that follows its first request after a delay. Requests in between ask for the same call. */
export class DelayedCall {
  readonly #schedule: () => () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, delayMs: number, call: () => void) {
    const onTime = (): void => {
      this.#cancel = undefined;
      call();
    };
    this.#schedule = () => clock.setTimeout(onTime, delayMs);
  }

  request(): void {
    this.#cancel ??= this.#schedule();
  }

  cancel(): void {
    this.#cancel?.();
  }
}
