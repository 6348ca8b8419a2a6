import type { IncomingMessage } from 'node:http';
import type { Clock } from './clock.ts';

/** A client that is alive sends something in this time, also over a lossy radio link. */
const REST_MS = 10_000;
/** After the first 10 s: a poor uplink of half a megabit per second carries this. */
const BYTES_PER_MS = 65_536 / 1000;

/** For the client whose body is cut. */
export const TOO_SLOW =
  'The request body did not arrive in time: send it at 64 KiB per second or more, without a pause of 10 s.';

export interface BodyBounds {
  /** Bytes. */
  limit: number;
  /** Milliseconds in all. */
  longestMs: number;
}

/** What a client gets whose body is not read, in the words of its interface. */
export interface BodyErrors {
  tooLong: (limit: number) => Error;
  tooSlow: () => Error;
  /** It has nobody to read it. */
  gone: () => Error;
}

/**
 * Reads one body within its bounds, and at its pace: something must come every 10 s, and 64 KiB per second after the first
 * 10 s.
 */
export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #bounds: BodyBounds;
  readonly #errors: BodyErrors;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #done = Promise.withResolvers<void>();
  #lastAt: number;
  #size = 0;
  #append: (chunk: Buffer) => void = () => undefined;
  #cancel = (): void => undefined;

  constructor(request: IncomingMessage, bounds: BodyBounds, errors: BodyErrors, clock: Clock) {
    this.#request = request;
    this.#bounds = bounds;
    this.#errors = errors;
    this.#clock = clock;
    this.#startedAt = this.#lastAt = clock.monotonic();
  }

  /**
   * Gives each piece to `append`. Resolves at the end of the body. Rejects with one of the errors, or with what `append`
   * throws; what the client still sends is then dropped, unless the request is paused.
   */
  read(append: (chunk: Buffer) => void): Promise<void> {
    this.#append = append;
    this.#cancel = this.#clock.setTimeout(this.#checkPace, REST_MS);
    this.#request.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose);
    return this.#done.promise;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#size += chunk.length;
    this.#lastAt = this.#clock.monotonic();
    if (this.#size > this.#bounds.limit) {
      this.#fail(this.#errors.tooLong(this.#bounds.limit));
      return;
    }
    try {
      this.#append(chunk);
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #onEnd = (): void => {
    this.#stop();
    this.#done.resolve();
  };

  readonly #onClose = (): void => this.#fail(this.#errors.gone());

  readonly #checkPace = (): void => {
    const pace = this.#startedAt + Math.min(REST_MS + this.#size / BYTES_PER_MS, this.#bounds.longestMs);
    const left = Math.min(this.#lastAt + REST_MS, pace) - this.#clock.monotonic();
    if (left <= 0) this.#fail(this.#errors.tooSlow());
    else this.#cancel = this.#clock.setTimeout(this.#checkPace, left);
  };

  #fail(error: unknown): void {
    this.#stop();
    this.#done.reject(error);
  }

  #stop(): void {
    this.#cancel();
    this.#request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
  }
}
