import type { Clock } from '../../lib/clock.ts';
import { KeyBackoff } from '../../runtime/ratelimiter.ts';

/** Which namespaces go without their ResourceQuota for a while, because Kubernetes could not count its objects. */
export class UncountedQuotas {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #backoff = new KeyBackoff({ firstMs: 10_000, maxMs: 600_000 });
  /** When the quota may be made again, on the monotonic clock, milliseconds. */
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  note(namespace: string): void {
    this.#until.set(namespace, this.#clock.monotonic() + this.#backoff.next(namespace));
  }

  forget(namespace: string): void {
    this.#until.delete(namespace);
    this.#backoff.forget(namespace);
  }

  /** Milliseconds until the quota may be made; 0 for now. */
  waitMs(namespace: string): number {
    return Math.max(0, (this.#until.get(namespace) ?? 0) - this.#clock.monotonic());
  }
}
