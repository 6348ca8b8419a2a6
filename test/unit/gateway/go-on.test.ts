import { once } from 'node:events';
import * as http from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually, gatewayToOwn, post, type GatewayTo } from '../../support/model-gateway.ts';
import type { Behaviour, EngineOptions } from '../../support/scripted-engine.ts';
import { eventsIn, textOf, type StreamedEvent } from '../../support/streamed.ts';

const PATHS = { chat: 'chat/completions', responses: 'responses', messages: 'messages' } as const;
type Dialect = keyof typeof PATHS;
const ASKED = { role: 'user', content: 'Say hello' };
const BODIES: Record<Dialect, Record<string, unknown>> = {
  chat: { model: 'tiny', stream: true, messages: [ASKED], stream_options: { include_usage: true } },
  responses: { model: 'tiny', stream: true, input: 'Say hello' },
  messages: { model: 'tiny', stream: true, messages: [ASKED], max_tokens: 100 },
};
const TOKENS = ['Once', ' upon', ' a', ' time', '\n\n', 'there', ' was', ' a', ' ship', '.'];
const WHOLE = TOKENS.join('');
const CUT = 'broke off in the middle of the answer';
const ERROR = /"error":\{|event: error/;

function eventsOf(stream: string): StreamedEvent[] {
  return eventsIn(stream.split('\n'));
}

function textIn(stream: string): string {
  return eventsOf(stream).map(textOf).join('');
}

/** Tokens of the prompt and of the answer, as the last event that has any counts them. */
function usageIn(stream: string): (number | undefined)[] {
  const { usage, response } = eventsOf(stream).findLast((event) => event.usage ?? event.response?.usage) ?? {};
  const { prompt_tokens, completion_tokens, input_tokens, output_tokens } = usage ?? response?.usage ?? {};
  return [prompt_tokens ?? input_tokens, completion_tokens ?? output_tokens];
}

describe('a stream that broke off', () => {
  let started: GatewayTo | undefined;
  afterEach(() => started?.close());

  /** Servers of a kind, which behave so, in the order in which they are asked. */
  async function setup(options: EngineOptions, ...script: Behaviour[]): Promise<GatewayTo> {
    const left = [...script];
    const next = (): Behaviour => left.shift() ?? { kind: 'hang' };
    started = await gatewayToOwn(...script.map(() => ({ version: '0.24.0', ...options, script: next })));
    return started;
  }

  async function ask({ gateway }: GatewayTo, dialect: Dialect, more: Record<string, unknown> = {}): Promise<string> {
    return (await post(gateway, PATHS[dialect], { ...BODIES[dialect], ...more })).text();
  }

  const dies = (after: number, more: Partial<Behaviour> = {}): Behaviour =>
    ({ kind: 'write', tokens: TOKENS, dies: after, ...more }) as Behaviour;
  const LIVES: Behaviour = { kind: 'write', tokens: TOKENS };

  const WAYS: [Dialect, string, EngineOptions][] = [
    ['chat', 'as it is', { engine: 'vllm' }],
    ['chat', 'as it is', { engine: 'sglang' }],
    ['chat', 'as it is', { engine: 'llama.cpp' }],
    ['messages', 'as it is', { engine: 'vllm', dialects: ['chat', 'messages'] }],
    ['messages', 'translated', { engine: 'llama.cpp' }],
    ['responses', 'translated', { engine: 'sglang' }],
  ];

  it.each(WAYS)('goes on at another server, wherever it broke off: %s, %s, %o', async (dialect, _way, options) => {
    for (const after of [0, 1, 5, 8, TOKENS.length]) {
      const world = await setup(options, dies(after), LIVES);
      const stream = await ask(world, dialect);
      expect(textIn(stream)).toBe(WHOLE);
      expect(usageIn(stream)).toEqual([10, TOKENS.length]);
      expect(stream).not.toMatch(ERROR);
      await world.close();
      started = undefined;
    }
  });

  const count = ({ engines }: GatewayTo): number => engines.reduce((sum, { received }) => sum + received.length, 0);
  const lastBody = ({ engines }: GatewayTo): Record<string, unknown> =>
    engines
      .flatMap(({ received }) => received)
      .toSorted((a, b) => a.at - b.at)
      .at(-1)?.body ?? {};

  it('goes on twice, with the id, time and model that the first server gave it', async () => {
    const world = await setup({ engine: 'sglang' }, dies(3), dies(4), LIVES);
    const stream = await ask(world, 'chat');
    expect(textIn(stream)).toBe(WHOLE);
    expect(usageIn(stream)).toEqual([10, TOKENS.length]);
    const heads = eventsOf(stream).map(({ id, created, model }) => JSON.stringify([id, created, model]));
    expect(new Set(heads)).toEqual(new Set([JSON.stringify(['chatcmpl-1', 1, 'tiny'])]));
    expect(
      eventsOf(stream).flatMap(({ choices }) => (choices?.[0]?.delta?.role === undefined ? [] : [1])),
    ).toHaveLength(1);
    expect(await world.gateway.registry.metrics()).toContain(
      'berth_gateway_continuations_total{gen_ai_request_model="private"} 2',
    );
  });

  it('and no third time: then the client is told', async () => {
    const world = await setup({ engine: 'sglang' }, dies(3), dies(2), dies(1), LIVES);
    const stream = await ask(world, 'chat');
    expect(textIn(stream)).toBe(TOKENS.slice(0, 6).join(''));
    expect(stream.split(CUT)).toHaveLength(2);
    expect(count(world)).toBe(3);
  });

  it('breaks two servers at most, where the answer may be what breaks them', async () => {
    const world = await setup({ engine: 'sglang' }, dies(3), dies(0), LIVES);
    expect(await ask(world, 'chat')).toContain(CUT);
    expect(count(world)).toBe(2);
  });

  it('goes on when its server ended as cleanly as if it had said all', async () => {
    const world = await setup({ engine: 'vllm' }, dies(5, { endsCleanly: true }), LIVES);
    expect(textIn(await ask(world, 'chat'))).toBe(WHOLE);
  });

  it('keeps to the limit of the whole answer', async () => {
    const world = await setup({ engine: 'llama.cpp' }, dies(4), LIVES);
    expect(textIn(await ask(world, 'chat', { max_tokens: 7 }))).toBe(TOKENS.slice(0, 7).join(''));
    expect(lastBody(world)).toMatchObject({
      max_tokens: 3,
      messages: [ASKED, { content: TOKENS.slice(0, 4).join('') }],
    });
  });

  it('goes on with what the client itself had begun', async () => {
    const world = await setup({ engine: 'llama.cpp' }, dies(3), LIVES);
    const begun = { role: 'assistant', content: 'Once' };
    const stream = await ask(world, 'messages', { messages: [ASKED, begun] });
    expect(`Once${textIn(stream)}`).toBe(WHOLE);
  });

  it('keeps the whole answer, for a later call to continue', async () => {
    const world = await setup({ engine: 'sglang' }, dies(3), LIVES, LIVES);
    const stream = await ask(world, 'responses');
    const id = eventsOf(stream).findLast(({ response }) => response)?.response?.id;
    await ask(world, 'responses', { previous_response_id: id, input: 'And then?' });
    expect(lastBody(world)['messages']).toMatchObject([ASKED, { role: 'assistant', content: WHOLE }, { role: 'user' }]);
  });

  it('says behind the stream how often another server went on', async () => {
    const { gateway } = await setup({ engine: 'sglang' }, dies(3), LIVES);
    const body = JSON.stringify(BODIES.chat);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const request = http.request(`${gateway.base}/v1/chat/completions`, { method: 'POST', headers });
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.resume();
    await once(response, 'end');
    expect(response.headers['trailer']).toBe('x-berth-continued');
    expect(response.trailers).toEqual({ 'x-berth-continued': '1' });
  });

  it.each([
    ['a seed', { seed: 7 }],
    ['a form', { response_format: { type: 'json_object' } }],
    ['several answers', { n: 2 }],
    ['odds of tokens', { logprobs: true }],
    ['a tool that must be called', { tool_choice: 'required' }],
    ['a penalty that counts the answer', { presence_penalty: 0.5 }],
    ['a grammar, or whatever else nobody here knows', { guided_regex: 'O.*' }],
  ])('is cut where the rest may depend on where it began: %s', async (_what, more) => {
    const world = await setup({ engine: 'vllm' }, dies(3), LIVES);
    const stream = await ask(world, 'chat', more);
    expect(textIn(stream)).toBe(TOKENS.slice(0, 3).join(''));
    expect(stream).toContain(CUT);
    expect(count(world)).toBe(1);
  });

  const CALL = { id: 'call_1', name: 'look', arguments: '{"at":"this"}' };
  it.each([
    ['a call', { calls: [CALL] }, 3],
    ['thoughts', { reasoning: 'I think', text: 'Hello' }, 4],
  ])('is cut behind %s', async (_what, reply, events) => {
    for (const dialect of ['chat', 'responses', 'messages'] as const) {
      const world = await setup({ engine: 'vllm' }, { kind: 'break', reply, events }, LIVES);
      const stream = await ask(world, dialect);
      expect(stream).toContain(CUT);
      expect(count(world)).toBe(1);
      await world.close();
      started = undefined;
    }
  });

  it('is cut in the words of the gateway where the other server refuses to go on, or thinks first', async () => {
    const body = JSON.stringify({ error: { message: 'prefill is incompatible with enable_thinking' } });
    const refusing = await setup({ engine: 'llama.cpp' }, dies(3), { kind: 'status', status: 400, body });
    const refused = await ask(refusing, 'chat');
    expect(refused).toContain(CUT);
    expect(refused).not.toContain('prefill');
    await refusing.close();
    const thinking = await setup({ engine: 'sglang' }, dies(3), {
      kind: 'answer',
      reply: { reasoning: 'Hm', text: 'Hello' },
    });
    const stream = await ask(thinking, 'chat');
    expect(textIn(stream)).toBe(TOKENS.slice(0, 3).join(''));
    expect(stream).toContain(CUT);
  });

  it.each(['ollama', 'unknown', 'tgi'] as const)(
    'is cut where its servers do not go on with an answer: %s',
    async (engine) => {
      const world = await setup({ engine }, dies(3), LIVES);
      expect(await ask(world, 'chat')).toContain(CUT);
      expect(count(world)).toBe(1);
    },
  );

  it('leaves the other server when the client leaves', async () => {
    const world = await setup({ engine: 'sglang' }, dies(3), { kind: 'stall', reply: { text: 'x' }, events: 1 });
    const gone = new AbortController();
    const response = await post(world.gateway, PATHS.chat, BODIES.chat, { signal: gone.signal });
    await eventually(() => expect(count(world)).toBe(2));
    gone.abort();
    await expect(response.text()).rejects.toThrow();
    await eventually(() =>
      expect(world.engines.flatMap(({ received }) => received).some(({ abortedAt }) => abortedAt !== undefined)).toBe(
        true,
      ),
    );
  });
});
