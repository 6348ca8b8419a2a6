import type { Clock } from '../../lib/clock.ts';
import type { Endpoint } from '../endpoint.ts';

export interface HangWatchDeps {
  endpoints: () => Iterable<Endpoint>;
  /** Asks the server for anything that costs it nothing. Rejects when no answer comes. */
  ask: (endpoint: Endpoint, signal: AbortSignal) => Promise<unknown>;
  clock: Clock;
}

/** The server answers nobody. */
export class HungError extends Error {
  override readonly name = 'HungError';
}

/** The server has forgotten this request, while it answers others. */
export class LostError extends Error {
  override readonly name = 'LostError';
}

const EVERY_MS = 5000;
/** A busy server streams to somebody every few milliseconds. One prefill may silence all for some seconds. */
const SILENT_MS = 15_000;
/** Engines that tokenise a long prompt have answered nothing for several seconds, and were well. */
const ASK_MS = 5000;
/** Three questions in a row, 5 s apart: with the silence before, 30 to 45 s without a sign of life. */
const ASKS = 3;
/** Renewed at each question that fails, so the server rests until it answers one. */
const REST_MS = 15_000;
/** A call is sent again within its first minute only. After that it holds no memory for it. */
const KEEP_BODY_MS = 60_000;
/** A stream that began this much later and has begun to answer was served out of turn. */
const OVERTAKEN_MS = 60_000;
/** With 10 ms for each token of the prompt, which the slowest CPUs need. */
const LOST_MS = 120_000;
const MS_PER_TOKEN = 10;

/**
 * Tells servers that hang from servers that think. A long prefill may take minutes, so silence alone proves nothing:
 *
 * - When calls wait at an endpoint and no byte of any answer has come for 15 s, it is asked for its list of models. The
 *   engines that the gateway knows answer this apart from their computation. After three questions without an answer
 *   the endpoint hangs: its waiting calls go elsewhere, and it gets none until it answers a question.
 * - A stream without its first byte is lost when one that began a minute later has begun to answer, and 120 s and 10 ms
 *   for each token of its prompt have passed. This says nothing about other calls.
 * - Nothing else ends the patience of 600 s. An engine that the gateway does not know may do one thing at a time.
 */
export class HangWatch {
  readonly #deps: HangWatchDeps;
  /** Questions in a row without an answer. */
  readonly #failures = new WeakMap<Endpoint, number>();
  readonly #asking = new WeakSet<Endpoint>();
  #cancel: () => void = () => undefined;

  constructor(deps: HangWatchDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#cancel = this.#deps.clock.setTimeout(() => {
      this.round();
      this.start();
    }, EVERY_MS);
  }

  stop(): void {
    this.#cancel();
  }

  round(): void {
    const now = this.#deps.clock.monotonic();
    for (const endpoint of this.#deps.endpoints()) {
      const oldest = this.#patience(endpoint, now);
      if (endpoint.probe === undefined || endpoint.probe.engine === 'unknown') continue;
      const isSilent = oldest !== undefined && now - Math.max(oldest, endpoint.heardAt) >= SILENT_MS;
      if (isSilent || this.#hangs(endpoint)) void this.#ask(endpoint);
      else this.#failures.delete(endpoint);
    }
  }

  /** Looks after the calls that wait at an endpoint. Returns when the oldest of them began. */
  #patience(endpoint: Endpoint, now: number): number | undefined {
    let oldest: number | undefined;
    for (const flight of endpoint.flights) {
      if (flight.answered) continue;
      const { begunAt, isStream, promptTokens } = flight;
      oldest = Math.min(oldest ?? Infinity, begunAt);
      if (now - begunAt >= KEEP_BODY_MS) flight.letGo();
      const patience = LOST_MS + promptTokens * MS_PER_TOKEN;
      if (isStream && now - begunAt >= patience && endpoint.newestAnswered - begunAt >= OVERTAKEN_MS)
        flight.giveUp(new LostError('The model server answers later calls and not this one.'));
    }
    return oldest;
  }

  #hangs(endpoint: Endpoint): boolean {
    return (this.#failures.get(endpoint) ?? 0) >= ASKS;
  }

  async #ask(endpoint: Endpoint): Promise<void> {
    if (this.#asking.has(endpoint)) return;
    this.#asking.add(endpoint);
    const { clock, ask } = this.#deps;
    const timeout = new AbortController();
    const cancel = clock.setTimeout(() => timeout.abort(), ASK_MS);
    try {
      await ask(endpoint, timeout.signal);
      this.#failures.delete(endpoint);
    } catch {
      const failures = (this.#failures.get(endpoint) ?? 0) + 1;
      this.#failures.set(endpoint, failures);
      if (failures === ASKS) endpoint.breaker.fail('hung', clock.monotonic());
      if (failures >= ASKS) rest(endpoint);
    } finally {
      cancel();
      this.#asking.delete(endpoint);
    }
  }
}

/** Sends the calls that wait elsewhere, and no other call here for a while. */
function rest({ breaker, flights }: Endpoint): void {
  breaker.rest(REST_MS);
  for (const flight of flights) if (!flight.answered) flight.giveUp(new HungError('The model server answers nobody.'));
}
