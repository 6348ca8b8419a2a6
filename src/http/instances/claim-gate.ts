import type { Clock } from '../../lib/clock.ts';

/**
 * Lets a bounded number of requests try for a place at a time; the others wait in order. Without it a crowd that wants
 * the last places would cost the API server writes in vain: a request that waits here sees first what is left.
 */
export class ClaimGate {
  readonly #width: number;
  readonly #clock: Clock;
  readonly #line = new Set<() => void>();
  #inside = 0;

  /** @param width requests */
  constructor(width: number, clock: Clock) {
    this.#width = width;
    this.#clock = clock;
  }

  /** Resolves with the function that leaves again, or with undefined after the timeout or when the signal aborts. */
  enter({ timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal }): Promise<(() => void) | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const leave = (): void => this.#leave();
    if (this.#inside < this.#width) {
      this.#inside += 1;
      return Promise.resolve(leave);
    }
    return new Promise((resolve) => {
      const finish = (entered: boolean): void => {
        this.#line.delete(admit);
        cancel();
        signal.removeEventListener('abort', giveUp);
        if (entered) this.#inside += 1;
        resolve(entered ? leave : undefined);
      };
      const admit = (): void => finish(true);
      const giveUp = (): void => finish(false);
      const cancel = this.#clock.setTimeout(giveUp, timeoutMs);
      signal.addEventListener('abort', giveUp, { once: true });
      this.#line.add(admit);
    });
  }

  #leave(): void {
    this.#inside -= 1;
    const [next] = this.#line;
    next?.();
  }
}
