import type { Clock } from './clock.ts';

/** A client that is alive sends something in this time, also over a lossy radio link. */
const REST_MS = 10_000;
/** After the first 10 s: a poor uplink of half a megabit per second carries this. */
const BYTES_PER_MS = 65_536 / 1000;

/** For the client whose body is cut. */
export const TOO_SLOW =
  'The request body did not arrive in time: send it at 64 KiB per second or more, without a pause of 10 s.';

/**
 * Watches the pace of one body. Calls `tooSlow` once when nothing came for 10 s, when less than 64 KiB per second came
 * after the first 10 s, or after `longestMs`.
 */
export class BodyPace {
  readonly #clock: Clock;
  readonly #longestMs: number;
  readonly #tooSlow: () => void;
  readonly #startedAt: number;
  #lastAt: number;
  #size = 0;
  #cancel: () => void;

  constructor(clock: Clock, longestMs: number, tooSlow: () => void) {
    this.#clock = clock;
    this.#longestMs = longestMs;
    this.#tooSlow = tooSlow;
    this.#startedAt = this.#lastAt = clock.monotonic();
    this.#cancel = clock.setTimeout(() => this.#check(), REST_MS);
  }

  /** @param bytes that have come since the last call */
  received(bytes: number): void {
    this.#size += bytes;
    this.#lastAt = this.#clock.monotonic();
  }

  end(): void {
    this.#cancel();
  }

  #check(): void {
    const pace = this.#startedAt + Math.min(REST_MS + this.#size / BYTES_PER_MS, this.#longestMs);
    const left = Math.min(this.#lastAt + REST_MS, pace) - this.#clock.monotonic();
    if (left <= 0) this.#tooSlow();
    else this.#cancel = this.#clock.setTimeout(() => this.#check(), left);
  }
}
