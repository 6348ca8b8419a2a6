import type { Clock } from '../../lib/clock.ts';
import { GoneError, isUnreachable, KubeError, TooManyRequestsError, TransportError } from '../errors.ts';

// The numbers of client-go's reflector.go, but for the last, after which without a failure the next wait is the first one
// again: there a watch must be good for two minutes, and until then an API server that restarts twice costs half a minute.
const BACKOFF = { firstMs: 800, maxMs: 30_000, resetMs: 10_000 } as const;
/** While nothing answers, and while the API server starts. Up to as much again at random. */
const SOON_MS = 500;
/**
 * An API server that starts answers 503 with a Retry-After of five seconds, 403, 404 and 429, each for a moment: its
 * resources, roles and caches come one after the other. That it starts shows in that nothing answered before.
 */
const STARTING_MS = 30_000;
/** A version that is too old is cured by a list. When it is too old again so soon, a list does not cure it. */
const CURED_MS = 10_000;

interface Options {
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
}

/** client-go's NewExponentialBackoffManager with factor 2 and jitter 1. There the time of the wait counts as good. */
class Backoff {
  readonly #options: Options;
  #base: number = BACKOFF.firstMs;
  /** When the last wait was over. */
  #goodSince = -Infinity;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Milliseconds to wait after one more failure: doubling, capped, with up to as much again at random. */
  next(): number {
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    if (now - this.#goodSince > BACKOFF.resetMs) this.#base = BACKOFF.firstMs;
    const wait = this.#base * (1 + random());
    this.#goodSince = now + wait;
    this.#base = Math.min(this.#base * 2, BACKOFF.maxMs);
    return wait;
  }
}

/** Milliseconds of the server's Retry-After, within bounds. */
function askedToWait(error: unknown): number {
  return error instanceof KubeError ? Math.min(error.retryAfterMs ?? 0, BACKOFF.maxMs) : 0;
}

/** How long a reflector waits after a failure: a server that is there is spared, and no pause outlasts its cause. */
export class Pauses {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #backoff: Backoff;
  /** When nothing answered last, and when a version was too old last, monotonic. */
  #awayAt = -Infinity;
  #goneAt = -Infinity;

  constructor(options: Options) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#backoff = new Backoff(options);
  }

  /**
   * Milliseconds to wait after one more failure. A watch that is cut off is opened again soon, which costs the API server
   * little: most often it restarts, or another one takes over. A list that is cut off in its middle may have cost it much.
   */
  after(error: unknown, request: 'list' | 'watch'): number {
    const now = this.#clock.monotonic();
    const isRare = now - this.#goneAt > CURED_MS;
    if (error instanceof GoneError) this.#goneAt = now;
    if (error instanceof GoneError && isRare) return 0;
    const isCutOff = request === 'watch' && error instanceof TransportError && error.reason === 'CutOff';
    if (isUnreachable(error) || isCutOff) this.#awayAt = now;
    if (now - this.#awayAt < STARTING_MS) {
      const soon = SOON_MS * (1 + this.#random());
      return error instanceof TooManyRequestsError ? Math.max(soon, askedToWait(error)) : soon;
    }
    return Math.max(this.#backoff.next(), askedToWait(error));
  }
}
