import { afterEach, describe, expect, it } from 'vitest';
import { CALLER, gatewayTo, post, eventually } from '../../support/model-gateway.ts';
import type { Behaviour, EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';

const BODIES = {
  'chat/completions': { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }] },
  responses: { model: 'tiny', input: 'Say hello' },
  messages: { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }], max_tokens: 50 },
} as const;

const NATIVE: EngineOptions = { engine: 'vllm', version: '0.24.0', dialects: ['chat', 'responses', 'messages'] };
const CHAT_ONLY: EngineOptions = { engine: 'tgi' };

const PATHS = (['chat/completions', 'responses', 'messages'] as const).flatMap((path) =>
  [true, false].flatMap((stream) =>
    [NATIVE, CHAT_ONLY].map((engine) => ({ path, stream, engine, name: engine === NATIVE ? 'native' : 'chat engine' })),
  ),
);

describe('a client that leaves', () => {
  let close: (() => Promise<void>) | undefined;
  afterEach(() => close?.());

  /** The fastest of five runs: slower ones measure the other work of the machine. */
  async function abortTime(engine: EngineOptions, path: string, body: object, behaviour: Behaviour): Promise<number> {
    const started = await gatewayTo(engine);
    close = () => started.close();
    const { gateway } = started;
    const upstream = started.engines[0] as ScriptedEngine;
    upstream.behave(behaviour);
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const controller = new AbortController();
      const call = post(gateway, path, body, { signal: controller.signal })
        .then((response) => response.text())
        .catch((error: unknown) => error);
      const written = behaviour.kind === 'stall' ? 1 : 0;
      await eventually(() => expect(upstream.received[round]?.written).toBeGreaterThanOrEqual(written), 2);
      const at = performance.now();
      controller.abort();
      await eventually(() => expect(upstream.received[round]?.abortedAt).toBeDefined(), 1);
      times.push((upstream.received[round]?.abortedAt ?? Infinity) - at);
      await call;
    }
    const closed = /berth_gateway_requests_total\{[^}]*berth_outcome="client_closed"[^}]*\} 5/;
    await eventually(async () => expect(await gateway.registry.metrics()).toMatch(closed));
    if (behaviour.kind === 'stall') {
      const counted = /gen_ai_client_token_usage_total\{[^}]*gen_ai_token_type="output"[^}]*\} [1-9]/;
      expect(await gateway.registry.metrics()).toMatch(counted);
    }
    return Math.min(...times);
  }

  it.each(PATHS)('stops the engine within 50 ms: $path, stream $stream, $name', async ({ path, stream, engine }) => {
    const body = { ...BODIES[path], stream };
    expect(await abortTime(engine, path, body, { kind: 'hang' })).toBeLessThan(50);
  });

  it('stops the engine within 50 ms that has a body of a megabyte', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(2 ** 20) }];
    expect(await abortTime(NATIVE, 'chat/completions', { model: 'tiny', messages }, { kind: 'hang' })).toBeLessThan(50);
  });

  it.each([NATIVE, CHAT_ONLY])(
    'stops the engine in the middle of a stream, and what was made is counted',
    async (engine) => {
      const behaviour: Behaviour = { kind: 'stall', reply: { text: 'a longer text than one token' }, events: 3 };
      expect(await abortTime(engine, 'messages', { ...BODIES.messages, stream: true }, behaviour)).toBeLessThan(50);
    },
  );
});

it('a call that its client leaves before the answer counts its prompt in the tokens of the minute', async () => {
  const { gateway, engines, close } = await gatewayTo(NATIVE);
  const [engine] = engines as [ScriptedEngine];
  gateway.callAs({ ...CALLER, limits: { tokensPerMinute: 100 } });
  engine.behave({ kind: 'hang' });
  const left = new AbortController();
  const messages = [{ role: 'user', content: 'a'.repeat(4000) }];
  const call = post(gateway, 'chat/completions', { model: 'tiny', messages }, { signal: left.signal });
  call.catch(() => undefined);
  await eventually(() => expect(engine.received[0]).toBeDefined());
  left.abort();
  const closed = /berth_gateway_requests_total\{[^}]*berth_outcome="client_closed"[^}]*\} 1/;
  await eventually(async () => expect(await gateway.registry.metrics()).toMatch(closed));
  engine.behave({ kind: 'answer', reply: { text: 'Hi' } });
  expect((await post(gateway, 'chat/completions', BODIES['chat/completions'])).status).toBe(429);
  await close();
});

describe('an engine without end', () => {
  it('is stopped when its answer exceeds the limit, and the stream ends with an error', async () => {
    const { gateway, engines, close } = await gatewayTo(CHAT_ONLY);
    engines[0]?.behave({ kind: 'flood', events: 1_000_000 });
    const response = await post(gateway, 'messages', { ...BODIES.messages, stream: true });
    let last = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? [])
      last = last.slice(-500) + chunk;
    expect(last).toMatch(/event: error\ndata: .*"type":"api_error".*\n\n$/);
    await eventually(() => expect(engines[0]?.received[0]?.abortedAt).toBeDefined());
    await close();
  });
});

describe('a slow client', () => {
  it.each([
    { path: 'chat/completions', engine: NATIVE, name: 'native' },
    { path: 'messages', engine: CHAT_ONLY, name: 'translated' },
    { path: 'responses', engine: CHAT_ONLY, name: 'translated' },
  ] as const)('holds the engine back instead of filling memory: $path, $name', async ({ path, engine }) => {
    const { gateway, engines, close } = await gatewayTo(engine);
    const total = 50_000;
    engines[0]?.behave({ kind: 'flood', events: total });
    const response = await post(gateway, path, { ...BODIES[path], stream: true });
    const reader = response.body?.getReader();
    await reader?.read();
    // The engine writes until every buffer on the way is full, and then no more.
    let before = -1;
    await eventually(() => {
      const written = engines[0]?.received[0]?.written ?? 0;
      const stands = written === before;
      before = written;
      expect(stands).toBe(true);
    }, 200);
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(total * 4000 * 0.2);
    await reader?.cancel();
    await eventually(() => expect(engines[0]?.received[0]?.abortedAt).toBeDefined());
    await close();
  });
});
