import { hash32 } from '../../src/gateway/balance/hash.ts';
import { Model } from '../../src/gateway/balance/model.ts';
import type { Target } from '../../src/gateway/discovery/types.ts';
import { Endpoint } from '../../src/gateway/endpoint.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { fakeClock } from './fake-clock.ts';
import { randomFrom } from './random.ts';

export type Policy = 'round-robin' | 'least-load' | 'prefix';

export interface SimulationOptions {
  policy: Policy;
  engines: number;
  /** Conversations that go on at the same time. */
  conversations: number;
  turns: number;
  seed: number;
}

export interface SimulationResult {
  /** Seconds to the first token. */
  mean: number;
  p99: number;
  /** Share of the prompt tokens that a cache held. */
  hitRate: number;
}

/** Figures of an 8B model on one A10G-class GPU, rounded. */
const PREFILL_PER_SECOND = 6000;
const SECONDS_PER_TOKEN = 0.02;
/** The gateway reads the queues so often. */
const SCRAPE_SECONDS = 2;
const CACHE_TOKENS = 60_000;
const SYSTEM_TOKENS = 1500;
const USER_TOKENS = 120;
const ANSWER_TOKENS = 200;

interface SimulatedEngine {
  endpoint: Endpoint;
  /** When the prefill of everything accepted so far is done. */
  freeAt: number;
  /** When the prefill of the requests that wait begins. */
  starts: number[];
  /** Tokens held per conversation, least recently used first. */
  cache: Map<number, number>;
}

/**
 * Multi-turn traffic over engines with a prefix cache, in virtual time: prefill is serial per engine and as long as the
 * tokens that the cache does not hold, decoding goes on beside it. Every user waits for the answer, thinks, goes on.
 */
export function simulate({ policy, engines: count, conversations, turns, seed }: SimulationOptions): SimulationResult {
  const random = randomFrom(seed);
  let seconds = 0;
  const clock: Clock = { ...fakeClock(), monotonic: () => seconds * 1000 };
  const engines = Array.from({ length: count }, (_, index) => newEngine(index, clock));
  const model = new Model(
    'sim',
    engines.map(({ endpoint }) => ({ endpoint, upstreamModel: 'sim' })),
    clock,
  );
  const events: { at: number; run: () => void }[] = [];
  const schedule = (at: number, run: () => void): void => {
    events.push({ at, run });
  };
  const waits: number[] = [];
  let turn = 0;
  let scrapedAt = -Infinity;
  let held = 0;
  let total = 0;

  function scrape(): void {
    if (seconds - scrapedAt < SCRAPE_SECONDS) return;
    scrapedAt = seconds;
    for (const { endpoint, starts } of engines) {
      while ((starts[0] ?? Infinity) <= seconds) starts.shift();
      endpoint.load = { waiting: starts.length, running: 0, ranks: 1, kvUsage: 0, at: seconds * 1000 };
    }
  }

  function choose(conversation: number): SimulatedEngine | undefined {
    if (policy === 'round-robin') return engines[(turn += 1) % count];
    const key = policy === 'prefix' ? hash32(`conversation ${conversation} of ${seed}`) : undefined;
    const member = model.pick(key, [], 'tenant');
    return engines.find(({ endpoint }) => endpoint === member?.endpoint);
  }

  function ask(conversation: number, left: number, tokens: number): void {
    scrape();
    const engine = choose(conversation);
    if (engine === undefined) return;
    const cached = Math.min(engine.cache.get(conversation) ?? 0, tokens);
    held += cached;
    total += tokens;
    engine.endpoint.inFlight += 1;
    engine.endpoint.waiting += 1;
    const start = Math.max(seconds, engine.freeAt);
    engine.starts.push(start);
    engine.freeAt = start + (tokens - cached) / PREFILL_PER_SECOND;
    waits.push(engine.freeAt + SECONDS_PER_TOKEN - seconds);
    schedule(engine.freeAt + SECONDS_PER_TOKEN, () => {
      engine.endpoint.waiting -= 1;
    });
    remember(engine.cache, conversation, tokens + ANSWER_TOKENS);
    schedule(engine.freeAt + ANSWER_TOKENS * SECONDS_PER_TOKEN, () => {
      engine.endpoint.inFlight -= 1;
      if (left === 0) return;
      schedule(seconds + 1 + random() * 8, () => ask(conversation, left - 1, tokens + ANSWER_TOKENS + USER_TOKENS));
    });
  }

  for (let conversation = 0; conversation < conversations; conversation += 1) {
    const size = SYSTEM_TOKENS + Math.floor(random() * 3000);
    schedule(random() * 20, () => ask(conversation, turns - 1, size));
  }
  while (events.length > 0) {
    let next = 0;
    for (const [index, { at }] of events.entries()) if (at < (events[next]?.at ?? Infinity)) next = index;
    const [event] = events.splice(next, 1);
    seconds = event?.at ?? seconds;
    event?.run();
  }
  const sorted = waits.toSorted((a, b) => a - b);
  return {
    mean: waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    hitRate: held / total,
  };
}

function newEngine(index: number, clock: Clock): SimulatedEngine {
  const server = { namespace: 'sim', name: 'sim', uid: 'sim', shared: true, aliases: [], problems: [] };
  const key = `engine-${index}`;
  const target: Target = { key, place: key, origin: '', restarts: '', server, available: true };
  return { endpoint: new Endpoint(target, clock), freeAt: 0, starts: [], cache: new Map() };
}

function remember(cache: Map<number, number>, conversation: number, tokens: number): void {
  cache.delete(conversation);
  cache.set(conversation, tokens);
  let size = [...cache.values()].reduce((sum, held) => sum + held, 0);
  for (const [oldest, held] of cache) {
    if (size <= CACHE_TOKENS) return;
    cache.delete(oldest);
    size -= held;
  }
}
