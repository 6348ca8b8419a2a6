import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import { accessWhile } from '../../support/access.ts';
import {
  CALLER,
  eventually,
  type GatewayOptions,
  post,
  startGateway,
  type TestGateway,
} from '../../support/model-gateway.ts';
import { type EngineOptions, type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const BUSY = 'vllm:num_requests_running 8\nvllm:num_requests_waiting 20\n';
/** Neither more room nor less. */
const AS_BEFORE = 'vllm:num_requests_running 8\nvllm:num_requests_waiting 2\n';
const ROOM = 'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n';
const OTHER: Principal = { ...CALLER, keyId: 'key-2', namespace: 'tenant-b', name: 'other' };
const SCRAPES = 'GET /metrics';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closers.splice(0).toReversed()) await close();
});

interface World {
  gateway: TestGateway;
  engine: ScriptedEngine;
  /** What the engine says of itself from now on. */
  says: (metrics: string) => void;
  /** Whose calls follow. */
  asks: (caller: Principal, content: string, more?: object) => Promise<Response>;
  /** Takes the only place; the returned function gives it back. */
  takePlace: () => Promise<() => void>;
  waiting: () => Promise<number>;
}

/** A gateway in front of an engine that has said that it is busy with the calls of others, so that one at once may go there. */
async function busy(options: GatewayOptions = {}, annotations: Record<string, string> = {}): Promise<World> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const engineOptions: EngineOptions = { engine: 'vllm', metrics: BUSY };
  const engine = await startEngine(engineOptions);
  closers.push(() => engine.close());
  const gateway = await startGateway(undefined, options);
  closers.push(() => gateway.close());
  gateway.cluster.serve({ name: 'tiny-server', annotations, ports: [engine.port] });
  await gateway.ready('tiny');
  const scrapes = (): number => engine.probes.filter((probe) => probe === SCRAPES).length;
  const scraped = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round += 1) {
      const before = scrapes();
      vi.advanceTimersByTime(2000);
      await eventually(() => expect(scrapes()).toBeGreaterThan(before));
    }
  };
  // With the third question the answers to two are read.
  await scraped(3);
  engineOptions.metrics = AS_BEFORE;
  await scraped(2);
  const asks: World['asks'] = (caller, content, more = {}) => {
    gateway.callAs(caller);
    return post(gateway, 'chat/completions', { model: 'tiny', messages: [{ role: 'user', content }], ...more });
  };
  const waiting = async (): Promise<number> => {
    const found = /^berth_gateway_queued\{gen_ai_request_model="tiny"\} (\d+)$/m.exec(await gateway.registry.metrics());
    return Number(found?.[1] ?? 0);
  };
  return {
    gateway,
    engine,
    asks,
    waiting,
    says: (metrics) => {
      engineOptions.metrics = metrics;
    },
    async takePlace() {
      const leaving = new AbortController();
      engine.behave({ kind: 'hang' }, { kind: 'answer', reply: { text: 'Hello there' } });
      gateway.callAs(CALLER);
      const body = { model: 'tiny', messages: [{ role: 'user', content: 'first' }] };
      void post(gateway, 'chat/completions', body, { signal: leaving.signal }).catch(() => undefined);
      await eventually(() => expect(engine.received).toHaveLength(1));
      return () => leaving.abort();
    },
  };
}

function asked({ engine }: World): unknown[] {
  return engine.received.slice(1).map(({ body }) => (body.messages as { content: string }[])[0]?.content);
}

/** A call that waits: it was sent before those that follow. */
async function held(world: World, ...call: Parameters<World['asks']>): Promise<{ answered: Promise<Response> }> {
  const before = await world.waiting();
  const answered = world.asks(...call);
  await eventually(async () => expect(await world.waiting()).toBe(before + 1));
  return { answered };
}

describe('calls to an engine that is full', () => {
  it('go out one tenant after the other, whoever has sent most', async () => {
    const world = await busy();
    const free = await world.takePlace();
    const flood = [];
    for (let count = 0; count < 6; count += 1) flood.push(await held(world, CALLER, 'flood'));
    const honest = await held(world, OTHER, 'honest');
    free();
    for (const { answered } of [...flood, honest]) expect((await answered).status).toBe(200);
    expect(asked(world).indexOf('honest')).toBeLessThanOrEqual(1);
    expect(await world.waiting()).toBe(0);
    expect(await world.gateway.registry.metrics()).toMatch(
      /^berth_gateway_queue_wait_seconds_count\{gen_ai_request_model="tiny"\} 7$/m,
    );
  });

  it('go out by the priority of the key, and by what the call says of itself', async () => {
    const world = await busy();
    const free = await world.takePlace();
    const low = { ...CALLER, priority: 'low' as const };
    const calls = [
      await held(world, low, 'batch'),
      await held(world, low, 'batch', { service_tier: 'priority' }),
      await held(world, CALLER, 'flex', { service_tier: 'flex' }),
      await held(world, CALLER, 'person'),
      await held(world, CALLER, 'urgent', { service_tier: 'priority' }),
    ];
    free();
    for (const { answered } of calls) expect((await answered).status).toBe(200);
    expect(new Set(asked(world).slice(1, 3))).toEqual(new Set(['person', 'urgent']));
  });

  it('are in the list of models, with the time that they are likely to wait', async () => {
    const world = await busy();
    const { gateway } = world;
    const read = async () => (await (await fetch(`${gateway.base}/v1/models/tiny`)).json()) as { queue?: object };
    expect(await read()).not.toHaveProperty('queue');
    const free = await world.takePlace();
    const calls = [await held(world, CALLER, 'one'), await held(world, CALLER, 'two')];
    expect((await read()).queue).toEqual({ waiting: 2, expected_wait_seconds: null });
    free();
    for (const { answered } of calls) expect((await answered).status).toBe(200);
    expect(await read()).not.toHaveProperty('queue');
  });

  it('stay alive when they stream', async () => {
    const world = await busy();
    const free = await world.takePlace();
    const { answered } = await held(world, CALLER, 'stream', { stream: true });
    vi.advanceTimersByTime(20_000);
    const { body, status } = await answered;
    expect(status).toBe(200);
    const text: string[] = [];
    const decoder = new TextDecoder();
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      text.push(decoder.decode(chunk));
      if (text.length === 1) {
        expect(text[0]).toMatch(/^: waiting for the model\n\n/);
        free();
      }
    }
    expect(text.join('')).toContain('[DONE]');
  });

  it('go out when the engine says that it has room', async () => {
    const world = await busy();
    await world.takePlace();
    const { answered } = await held(world, CALLER, 'second');
    world.says(ROOM);
    expect((await answered).status).toBe(200);
  });

  it('do not wait where another model may take them that has room', async () => {
    const world = await busy({}, { 'berth.dev/model-fallbacks': 'large' });
    const large = await startEngine({ models: ['large'] });
    closers.push(() => large.close());
    world.gateway.cluster.serve({ name: 'large', ports: [large.port] });
    await world.gateway.ready('large');
    const free = await world.takePlace();
    const answer = await world.asks(CALLER, 'second');
    expect([answer.status, answer.headers.get('x-berth-route')]).toEqual([
      200,
      expect.stringContaining('fallback=large; reason=full'),
    ]);
    world.gateway.cluster.remove('berth-system', 'large');
    await eventually(async () => expect((await world.asks(CALLER, 'x', { model: 'large' })).status).toBe(404));
    const { answered } = await held(world, CALLER, 'third');
    free();
    expect((await answered).status).toBe(200);
    expect(asked(world)).toEqual(['third']);
  });

  it('wait no longer when their caller leaves', async () => {
    const world = await busy();
    const free = await world.takePlace();
    const leaving = new AbortController();
    const body = { model: 'tiny', messages: [{ role: 'user', content: 'leaving' }] };
    const left = post(world.gateway, 'chat/completions', body, { signal: leaving.signal });
    await eventually(async () => expect(await world.waiting()).toBe(1));
    leaving.abort();
    await expect(left).rejects.toThrow();
    await eventually(async () => expect(await world.waiting()).toBe(0));
    free();
    expect((await world.asks(CALLER, 'next')).status).toBe(200);
    expect(asked(world)).toEqual(['next']);
  });

  it('end when their key does', async () => {
    let lost = false;
    const { access, recheck } = accessWhile(() => (lost ? 'The API key is over.' : undefined));
    const world = await busy({ access });
    await world.takePlace();
    const { answered } = await held(world, CALLER, 'second');
    lost = true;
    await recheck();
    expect((await answered).status).toBe(401);
    expect(asked(world)).toEqual([]);
  });

  it.each<[string, Principal | undefined, number, string]>([
    ['the key is gone', undefined, 401, 'was revoked or deleted'],
    ['the key lost its scope', { ...CALLER, scopes: ['compute:read'] }, 403, "lacks the scope 'models'"],
    ['the key lost the model', { ...CALLER, models: ['other'] }, 404, 'does not exist or you do not have access'],
  ])('are refused at their turn when %s, and the turn is that of the next', async (_what, later, status, words) => {
    let now: Principal | undefined = CALLER;
    const world = await busy({ caller: (principal) => (principal.namespace === OTHER.namespace ? principal : now) });
    const free = await world.takePlace();
    const first = await held(world, CALLER, 'first in line');
    const second = await held(world, OTHER, 'second in line');
    now = later;
    free();
    const answer = await first.answered;
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(words)]);
    expect((await second.answered).status).toBe(200);
    expect(asked(world)).toEqual(['second in line']);
  });

  it('are refused at their turn when the budget is spent', async () => {
    let spent = '0.00';
    const lines = () => [{ unit: 'USD', max: '100.00', spent }];
    const budgets = () => ({ month: '', renewsAt: '', at: '', percent: 0, lines: lines() });
    const prices = { 'berth.dev/price-input': '1', 'berth.dev/price-output': '1', 'berth.dev/price-currency': 'USD' };
    const world = await busy({ budgets }, prices);
    const free = await world.takePlace();
    const { answered } = await held(world, CALLER, 'second', { max_tokens: 10 });
    spent = '100.00';
    free();
    const answer = await answered;
    expect([answer.status, await answer.text()]).toEqual([429, expect.stringContaining('100.00 of 100.00 USD')]);
    expect(asked(world)).toEqual([]);
  });

  it('hear that their server is gone', async () => {
    const world = await busy();
    await world.takePlace();
    const { answered } = await held(world, CALLER, 'second');
    world.gateway.cluster.remove('berth-system', 'tiny-server');
    const answer = await answered;
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('no ready server')]);
  });

  it('are sent to another replica when this one stops', async () => {
    const stopping = new AbortController();
    const world = await busy({ stopping: stopping.signal });
    await world.takePlace();
    const { answered } = await held(world, CALLER, 'second');
    stopping.abort();
    const answer = await answered;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  });
});
