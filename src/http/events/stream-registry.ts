import type { Request, Response } from 'express';
import type { Clock } from '../../lib/clock.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import { getPrincipal, type Principal } from '../../access/principal.ts';
import { ApiError } from '../errors/api-error.ts';
import { type EventStream, openEventStream } from './event-stream.ts';

const MAX_PER_KEY = 32;
const MAX_STREAMS = 5000;
/** A key that is revoked, or may not read any more, loses its streams within this time. */
const CHECK_MS = 1000;
const CHECKS_PER_BEAT = 15;

export interface StreamRegistry {
  /** Answers with an event stream; throws 429 when there are too many. */
  open(request: Request, response: Response): EventStream;
  /** Looks after open streams until the signal aborts, then ends them. */
  run(signal: AbortSignal): Promise<void>;
}

/** Whether a client asks for events instead of one answer. */
export function wantsEvents(request: Request): boolean {
  return /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(request.headers.accept ?? '');
}

/** All event streams of this process. */
export function createStreamRegistry(deps: { authenticator: Authenticator; clock: Clock }): StreamRegistry {
  const streams = new Map<EventStream, Principal>();

  function countOf({ keyId }: Principal): number {
    let count = 0;
    for (const principal of streams.values()) if (principal.keyId === keyId) count += 1;
    return count;
  }

  return {
    open(request, response) {
      const principal = getPrincipal(request);
      if (streams.size >= MAX_STREAMS || countOf(principal) >= MAX_PER_KEY) {
        throw new ApiError('too_many_streams', `This key may have ${MAX_PER_KEY} event streams open. Close one.`, {
          headers: { 'retry-after': '10' },
        });
      }
      const stream = openEventStream(response);
      streams.set(stream, principal);
      response.once('close', () => streams.delete(stream));
      return stream;
    },
    async run(signal) {
      for (let checks = 1; !signal.aborted; checks += 1) {
        await deps.clock.sleep(CHECK_MS, signal);
        for (const [stream, principal] of streams) {
          if (!deps.authenticator.isValid(principal, 'compute:read')) stream.end();
          else if (checks % CHECKS_PER_BEAT === 0) stream.beat();
        }
      }
      for (const stream of streams.keys()) stream.end();
    },
  };
}
