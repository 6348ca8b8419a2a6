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
/** With 10 ms for each token of the prompts that wait, which the slowest CPUs need. */
const LOST_MS = 120_000;
const MS_PER_TOKEN = 10;
/** After a server stood still, a call that tries it waits no longer than this, and 10 ms for each token. */
const TRIAL_MS = 15_000;
/** How long a server that stood still gets no calls before one tries it. */
const STILL_REST_MS = 60_000;

/** What is under way at an endpoint. */
interface UnderWay {
  /** When the oldest call began. */
  since: number;
  /** Tokens of the prompts whose calls have had no byte. */
  promptTokens: number;
}

/**
 * Tells servers that hang from servers that think. A long prefill may take minutes, so silence alone proves nothing:
 *
 * - When calls are under way at an endpoint and no byte of any answer has come for 15 s, it is asked for its list of
 *   models. The engines that the gateway knows answer this apart from their computation. After three questions without
 *   an answer the endpoint hangs: calls without a byte go elsewhere, streams that have begun end with an error, and it
 *   gets none until it answers a question.
 * - vLLM answers such questions also when its engine stands still, but its counters of tokens then stand still too.
 *   When neither they nor any answer have moved for 120 s and 10 ms for each token of the prompts that wait, the same
 *   happens. A call tries the endpoint every minute.
 * - A stream without its first byte is lost when one that began a minute later has begun to answer, and 120 s and 10 ms
 *   for each token of its prompt have passed. This says nothing about other calls.
 * - Nothing else ends the patience of 600 s. An engine that the gateway does not know may do one thing at a time.
 */
export class HangWatch {
  readonly #deps: HangWatchDeps;
  /** Questions in a row without an answer. */
  readonly #failures = new WeakMap<Endpoint, number>();
  readonly #asking = new WeakSet<Endpoint>();
  /** When an endpoint was found to stand still. */
  readonly #stillAt = new WeakMap<Endpoint, number>();
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
      const underWay = this.#patience(endpoint, now);
      // An engine that nobody knows may do one thing at a time. What is outside serves many.
      if (endpoint.probe === undefined || (endpoint.probe.engine === 'unknown' && !endpoint.isOutside)) continue;
      const isSilent = underWay !== undefined && now - Math.max(underWay.since, endpoint.heardAt) >= SILENT_MS;
      if (isSilent && this.#standsStill(endpoint, underWay)) {
        this.#stillAt.set(endpoint, now);
        endpoint.breaker.fail('hung', now);
        giveUp(endpoint, STILL_REST_MS);
      } else if (isSilent || this.#hangs(endpoint)) void this.#ask(endpoint);
      else this.#failures.delete(endpoint);
    }
  }

  /** Looks after the calls under way at an endpoint. Returns undefined when there are none. */
  #patience(endpoint: Endpoint, now: number): UnderWay | undefined {
    let underWay: UnderWay | undefined;
    for (const flight of endpoint.flights) {
      const { begunAt, isStream, promptTokens, answered } = flight;
      underWay ??= { since: begunAt, promptTokens: 0 };
      underWay.since = Math.min(underWay.since, begunAt);
      if (answered) continue;
      underWay.promptTokens += promptTokens;
      if (now - begunAt >= KEEP_BODY_MS) flight.letGo();
      const patience = LOST_MS + promptTokens * MS_PER_TOKEN;
      if (isStream && now - begunAt >= patience && endpoint.newestAnswered - begunAt >= OVERTAKEN_MS)
        flight.giveUp(new LostError('The model server answers later calls and not this one.'));
    }
    return underWay;
  }

  /**
   * Whether the engine has calls, and its counters, when they were last read, had not moved for longer than any prompt
   * takes. An engine that has none may wait for a client that does not read.
   */
  #standsStill(endpoint: Endpoint, { since, promptTokens }: UnderWay): boolean {
    const { load, heardAt, movedAt } = endpoint;
    if (load?.steps === undefined || load.running + load.waiting === 0) return false;
    const moved = Math.max(heardAt, movedAt);
    const isTrial = (this.#stillAt.get(endpoint) ?? -Infinity) > moved;
    const patience = (isTrial ? TRIAL_MS : LOST_MS) + promptTokens * MS_PER_TOKEN;
    return load.at - Math.max(since, moved) >= patience;
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
      if (failures >= ASKS) giveUp(endpoint, REST_MS);
    } finally {
      cancel();
      this.#asking.delete(endpoint);
    }
  }
}

/** Ends the calls under way, most of which go elsewhere, and sends no other here for a while. */
function giveUp({ breaker, flights }: Endpoint, restMs: number): void {
  breaker.rest(restMs);
  for (const flight of flights) flight.giveUp(new HungError('The model server is not responding.'));
}
