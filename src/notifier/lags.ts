/** Since when webhooks whose targets take events have something to deliver, by their keys. */
export class Lags {
  readonly #since = new Map<string, number>();

  /** `at`: milliseconds since the epoch. */
  note(key: string, at: number): void {
    this.#since.set(key, at);
  }

  forget(key: string): void {
    this.#since.delete(key);
  }

  clear(): void {
    this.#since.clear();
  }

  /** Milliseconds for which the oldest has waited; 0 when nothing waits. `now`: milliseconds since the epoch. */
  oldestMs(now: number): number {
    let oldest = now;
    for (const at of this.#since.values()) if (at < oldest) oldest = at;
    return now - oldest;
  }
}
