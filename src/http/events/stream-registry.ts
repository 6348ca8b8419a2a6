import type { Request, Response } from 'express';
import { getPrincipal, type Principal } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import { ApiError } from '../errors/api-error.ts';
import { EventStream } from './event-stream.ts';

const MAX_PER_KEY = 32;
const MAX_STREAMS = 5000;
/** A key that is revoked or loses its scope loses its streams within this time. */
const CHECK_MS = 1000;
const CHECKS_PER_BEAT = 15;

/** All event streams of this process. */
export class StreamRegistry {
  readonly #deps: { authenticator: Authenticator; clock: Clock };
  readonly #streams = new Map<EventStream, Principal>();

  constructor(deps: { authenticator: Authenticator; clock: Clock }) {
    this.#deps = deps;
  }

  /** Answers with an event stream; throws 429 when the key or the process has too many. */
  open(request: Request, response: Response): EventStream {
    const principal = getPrincipal(request);
    if (this.#streams.size >= MAX_STREAMS || this.#countOf(principal) >= MAX_PER_KEY) {
      throw new ApiError('too_many_streams', `This key may have ${MAX_PER_KEY} event streams open. Close one.`, {
        retryAfterSeconds: 10,
      });
    }
    const stream = new EventStream(response);
    this.#streams.set(stream, principal);
    response.once('close', () => this.#streams.delete(stream));
    return stream;
  }

  /** Checks the keys of open streams until the signal aborts, then ends all streams. */
  async run(signal: AbortSignal): Promise<void> {
    for (let checks = 1; !signal.aborted; checks += 1) {
      await this.#deps.clock.sleep(CHECK_MS, signal);
      for (const [stream, principal] of this.#streams) {
        if (!this.#deps.authenticator.isValid(principal, 'compute:read')) stream.end();
        else if (checks % CHECKS_PER_BEAT === 0) stream.beat();
      }
    }
    for (const stream of this.#streams.keys()) stream.end();
  }

  #countOf({ keyId }: Principal): number {
    let count = 0;
    for (const principal of this.#streams.values()) if (principal.keyId === keyId) count += 1;
    return count;
  }
}
