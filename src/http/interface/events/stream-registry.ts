import type { Request, Response } from 'express';
import type { AccessWatch } from '../../../access/access-watch.ts';
import type { CeilingsOf } from '../../../access/ceilings.ts';
import { getPrincipal, type Principal } from '../../../access/principal.ts';
import type { Clock } from '../../../lib/clock.ts';
import { FairShares, Shares } from '../../../lib/shares.ts';
import { whoCanChange } from '../../../resources/tenants/who-can-change.ts';
import { ApiError } from '../errors/api-error.ts';
import { overloaded } from '../errors/busy.ts';
import { EventStream } from './event-stream.ts';

const MAX_PER_KEY = 32;
const MAX_STREAMS = 5000;
/** Bytes that wait for clients that do not read, of all streams. */
const MAX_PENDING = 128 * 1024 * 1024;
/** A tenant may have as many streams open as are left for others, and half as many bytes waiting. */
const STREAMS_FACTOR = 1;
const PENDING_FACTOR = 1 / 2;
const BEAT_MS = 15_000;
/** Milliseconds in which a client reads what waits for it of a stream that has ended. */
const LAST_WORDS_MS = 1000;

export interface StreamDeps {
  access: Pick<AccessWatch, 'open'>;
  ceilings: CeilingsOf;
  clock: Clock;
}

/** All event streams of this process. */
export class StreamRegistry {
  readonly #deps: StreamDeps;
  readonly #streams = new Set<EventStream>();
  readonly #byKey = new Shares(MAX_STREAMS);
  readonly #byTenant = new FairShares(MAX_STREAMS, STREAMS_FACTOR);
  readonly #pending = new FairShares(MAX_PENDING, PENDING_FACTOR);

  constructor(deps: StreamDeps) {
    this.#deps = deps;
  }

  /**
   * Answers a client that is still there with an event stream; throws 429 when the key or the tenant has too many, 503
   * when the process has.
   */
  open(request: Request, response: Response): EventStream {
    const principal = getPrincipal(request);
    const { keyId, namespace } = principal;
    this.#take(principal);
    const stream = new EventStream(response, {
      take: (bytes) => this.#pending.take(namespace, bytes) === 'taken',
      give: (bytes) => this.#pending.give(namespace, bytes),
    });
    this.#streams.add(stream);
    const access = this.#deps.access.open(principal, { scope: 'compute:read' });
    const end = (): void => {
      stream.end();
      response.once(
        'close',
        this.#deps.clock.setTimeout(() => response.destroy(), LAST_WORDS_MS),
      );
    };
    if (access.signal.aborted) end();
    else access.signal.addEventListener('abort', end);
    response.once('close', () => {
      access.close();
      this.#streams.delete(stream);
      this.#byKey.give(keyId, 1);
      this.#byTenant.give(namespace, 1);
      stream.forget();
    });
    return stream;
  }

  /** Keeps open streams alive until the signal aborts, then ends them. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.clock.sleep(BEAT_MS, signal);
      for (const stream of this.#streams) stream.beat();
    }
    for (const stream of this.#streams) stream.end();
  }

  #take({ keyId, namespace }: Principal): void {
    const { http, policies } = this.#deps.ceilings(namespace);
    const most = http.eventStreams;
    const taken = this.#byTenant.take(namespace, 1, most);
    if (taken === 'all-full') throw overloaded('event streams');
    if (taken === 'owner-full') {
      throw tooMany(`This tenant may have ${most}`, whoCanChange('http.eventStreams', policies));
    }
    if (this.#byKey.take(keyId, 1, MAX_PER_KEY) === 'taken') return;
    this.#byTenant.give(namespace, 1);
    throw tooMany(`This key may have ${MAX_PER_KEY}`);
  }
}

function tooMany(whoAndHowMany: string, lift = ''): ApiError {
  const message = `${whoAndHowMany} event streams open in a replica. Close one. ${lift}`.trim();
  return new ApiError('too_many_streams', message, { retryAfterSeconds: 10 });
}
