import { once } from 'node:events';
import * as http from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { isSaidInChat, quirksOf, StreamTranslator } from '../../../src/gateway/dialects/index.ts';
import { chatEvents } from '../../support/engine-answers.ts';
import { CALLER, eventually, gatewayToOwn, post, type GatewayTo } from '../../support/model-gateway.ts';
import type { Behaviour, EngineOptions } from '../../support/scripted-engine.ts';
import { COLLECT } from './dialects/engines.ts';
import { collectResponses } from './dialects/strict-responses.ts';
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

const SYSTEM = [
  { type: 'text', text: 'x-anthropic-billing-header: cch=1;' },
  { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
  { type: 'text', text: 'Be kind.' },
];

it('says the same in chat only where it is known how an engine reads several texts of the system', () => {
  expect(quirksOf('unknown', undefined, 'tiny').joinsSystem).toBeUndefined();
  expect(isSaidInChat({ system: SYSTEM }, undefined)).toBe(false);
  expect(isSaidInChat({ system: SYSTEM.slice(0, 2) }, undefined)).toBe(true);
});

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
    ['responses', 'as it is', { engine: 'vllm', dialects: ['chat', 'responses'] }],
  ];

  it.each(WAYS)('goes on at another server, wherever it broke off: %s, %s, %o', async (dialect, _way, options) => {
    for (const after of [0, 1, 5, 8, TOKENS.length]) {
      const world = await setup(options, dies(after), LIVES);
      const stream = await ask(world, dialect);
      expect(COLLECT[dialect](stream).text).toBe(WHOLE);
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

  const SPEAKS_RESPONSES: EngineOptions = { engine: 'vllm', dialects: ['chat', 'responses'] };

  it.each([-2, 0, 1, 5, TOKENS.length])(
    'goes on with a response under its numbers and ids, %i events behind its head',
    async (after) => {
      const world = await setup(SPEAKS_RESPONSES, dies(after), LIVES);
      const stream = await ask(world, 'responses', { metadata: { of: 'client' } });
      expect(collectResponses(stream)).toMatchObject({ text: WHOLE, stop: 'completed' });
      const responses = eventsOf(stream).flatMap(({ response }) => response ?? []);
      expect(new Set(responses.map(({ id }) => id)).size).toBe(1);
      expect(responses.at(-1)?.id).toMatch(/^resp_\d+$/);
      expect(new Set(stream.match(/"item_id":"\w+"/g)).size).toBe(1);
    },
  );

  it.each([
    ['before it is in progress', -3, {}],
    ['within the head of its text', -1, {}],
    ['where texts of the system are joined by its engine', 3, { input: [{ role: 'developer', content: 'Be brief' }] }],
    ['with odds of tokens', 3, { top_logprobs: 2, include: ['message.output_text.logprobs'] }],
    ['with a field that only its engine reads', 3, { seed: 7 }],
  ])('cuts a response %s', async (_what, after, more) => {
    const world = await setup(SPEAKS_RESPONSES, dies(after), LIVES);
    expect(await ask(world, 'responses', more)).toContain(CUT);
    expect(count(world)).toBe(1);
  });

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

  it.each([{ engine: 'sglang' }, SPEAKS_RESPONSES] as EngineOptions[])(
    'keeps the whole answer, for a later call to continue: %o',
    async (options) => {
      const world = await setup(options, dies(3), LIVES, LIVES);
      const stream = await ask(world, 'responses');
      const id = eventsOf(stream).findLast(({ response }) => response)?.response?.id;
      await ask(world, 'responses', { previous_response_id: id, input: 'And then?' });
      const { messages, input } = lastBody(world);
      const answer = messages === undefined ? [{ text: WHOLE }] : WHOLE;
      expect(messages ?? input).toMatchObject([
        { role: 'user' },
        { role: 'assistant', content: answer },
        { role: 'user' },
      ]);
    },
  );

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

  it.each([
    ['refuses', { kind: 'status', status: 503 }],
    ['is not there', { kind: 'reset' }],
  ] as const)('goes on at a third server when the second one %s', async (_what, second) => {
    for (const after of [3, 5]) {
      const world = await setup({ engine: 'vllm' }, dies(after), second, LIVES);
      const stream = await ask(world, 'chat');
      if (second.kind === 'status') {
        expect(textIn(stream)).toBe(WHOLE);
        expect(usageIn(stream)).toEqual([10, TOKENS.length]);
      } else expect(stream).toContain(CUT);
      await world.close();
      started = undefined;
    }
  });

  it('is cut, and not begun anew, where the other server answers whole', async () => {
    const whole = JSON.stringify({ choices: [{ finish_reason: 'stop', message: { content: ' time' } }] });
    const world = await setup({ engine: 'sglang' }, dies(3), {
      kind: 'raw',
      contentType: 'application/json',
      chunks: [whole],
    });
    const stream = await ask(world, 'chat');
    expect(textIn(stream)).toBe(TOKENS.slice(0, 3).join(''));
    expect(stream).toContain(CUT);
  });

  it('is cut where it ends with half of what stops the answer', async () => {
    const half = await setup({ engine: 'sglang' }, dies(3), LIVES);
    const stream = await ask(half, 'chat', { stop: ['a ship'] });
    expect(textIn(stream)).toBe(TOKENS.slice(0, 3).join(''));
    expect(stream).toContain(CUT);
    await half.close();
    const none = await setup({ engine: 'sglang' }, dies(3), LIVES);
    expect(textIn(await ask(none, 'chat', { stop: ['END', '###'] }))).toBe(WHOLE);
  });

  const UPLOAD = { role: 'user', content: [{ type: 'container_upload', file_id: 'file_1' }] };
  it.each([
    ['a field that only its engine reads', { seed: 7 }],
    ['a block that only its engine reads', { messages: [UPLOAD, ASKED] }],
  ])('of messages is cut where its body has %s', async (_what, more) => {
    const world = await setup({ engine: 'vllm', dialects: ['chat', 'messages'] }, dies(3), LIVES);
    const stream = await ask(world, 'messages', more);
    expect(textIn(stream)).toBe(TOKENS.slice(0, 3).join(''));
    expect(stream).toContain(CUT);
    expect(stream).not.toContain('not supported');
    expect(count(world)).toBe(1);
  });

  it.each([
    [{ engine: 'vllm', dialects: ['chat', 'messages'] }, 'Be brief.Be kind.'],
    [{ engine: 'sglang', dialects: ['chat', 'messages'], version: '0.5.17' }, 'Be brief.\nBe kind.'],
    [{ engine: 'llama.cpp', dialects: ['chat', 'messages'], version: 'b9000' }, 'Be brief.Be kind.'],
    [{ engine: 'vllm' }, 'Be brief.\n\nBe kind.'],
  ] as [EngineOptions, string][])(
    'goes on behind the texts of the system as the first engine read them: %o',
    async (options, system) => {
      const world = await setup(options, dies(3), LIVES);
      const stream = await ask(world, 'messages', { system: SYSTEM });
      expect(textIn(stream)).toBe(WHOLE);
      expect(lastBody(world)).toMatchObject({ messages: [{ role: 'system', content: system }, ASKED, {}] });
    },
  );

  it('does not go on at servers that have its name since then', async () => {
    const gate = Promise.withResolvers<undefined>();
    const begun = chatEvents('tiny', { text: WHOLE, tokens: TOKENS }, true).slice(0, 4).join('');
    const first: Behaviour = {
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [begun, ': \n\n'],
      gate: gate.promise,
    };
    const { gateway, engines } = await setup({ engine: 'sglang' }, first, LIVES);
    const response = await post(gateway, PATHS.chat, BODIES.chat);
    const asked = engines.find(({ received }) => received.length > 0);
    gateway.cluster.remove(CALLER.namespace, 'tiny-server');
    const other = engines.find((engine) => engine !== asked);
    gateway.cluster.serve({ name: 'other', namespace: CALLER.namespace, ports: [other?.port ?? 0] });
    await gateway.ready('tiny', 1);
    gate.resolve(undefined);
    expect(await response.text()).toContain(CUT);
    expect(other?.received).toEqual([]);
  });

  it.each([
    ['chat', { engine: 'vllm' }, 1],
    ['chat', { engine: 'unknown' }, 1],
    ['responses', { engine: 'sglang' }, 1],
    ['messages', { engine: 'sglang' }, 1],
    ['messages', { engine: 'vllm', dialects: ['chat', 'messages'] }, 2],
  ] as [Dialect, EngineOptions, number][])(
    'is whole where its server broke off behind the reason to stop: %s, %o',
    async (dialect, options, events) => {
      const world = await setup(options, dies(TOKENS.length + events), LIVES);
      const stream = await ask(world, dialect);
      expect(textIn(stream)).toBe(WHOLE);
      expect(stream).not.toMatch(ERROR);
      expect(stream).toMatch(/\[DONE\]|message_stop/);
      expect(count(world)).toBe(1);
    },
  );

  it('leaves a server at once that goes on otherwise', async () => {
    const begun = chatEvents('tiny', { reasoning: 'Hm, hm' }, true).slice(0, 2);
    const thinks: Behaviour = {
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [begun.join(''), ': \n\n'],
      gate: new Promise(() => undefined),
    };
    const world = await setup({ engine: 'sglang' }, dies(3), thinks, LIVES);
    expect(await ask(world, 'chat')).toContain(CUT);
    const left = () => world.engines.flatMap(({ received }) => received).filter(({ abortedAt }) => abortedAt);
    await eventually(() => expect(left()).toHaveLength(2));
    expect(count(world)).toBe(2);
  });

  it('ends at the other server with the words of the gateway when that ends the call, and asks no third', async () => {
    const world = await setup({ engine: 'sglang' }, dies(3), { kind: 'stall', reply: { text: 'x' }, events: 1 }, LIVES);
    const response = await post(world.gateway, PATHS.responses, BODIES.responses);
    await eventually(() => expect(count(world)).toBe(2));
    world.gateway.endCalls();
    const stream = await response.text();
    expect(stream).toContain('Service unavailable: this replica of the gateway stops');
    expect(stream.match(/"type":"response.failed"/g)).toHaveLength(1);
    expect(count(world)).toBe(2);
  });

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

it('what was told is counted by events, until the other server reports', () => {
  const translator = new StreamTranslator('chat', 'messages', {
    id: '0a',
    createdAt: 1,
    model: 'tiny',
    request: BODIES.messages,
  });
  const events = chatEvents('tiny', { tokens: TOKENS }, 'each');
  translator.push(Buffer.from(events.slice(0, 4).join('')));
  expect(translator.usage).toMatchObject({ inputTokens: 10, outputTokens: 3 });
  translator.goOn({ given: 3, repeated: '' });
  translator.push(
    Buffer.from(
      chatEvents('tiny', { tokens: TOKENS.slice(3) }, false)
        .slice(0, 5)
        .join(''),
    ),
  );
  expect(translator.usage).toMatchObject({ inputTokens: 10, outputTokens: 7 });
});

it.each<[string, number]>([
  ['one to an event', 1],
  ['ten to an event', 10],
])(
  'what an engine is given of an answer is counted by its text where tokens come many to an event: %s',
  (_what, size) => {
    const words = Array.from({ length: 40 }, (_, index) => ` w${String(index).padStart(2, '0')}`);
    const event = (content: string): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
    const events = Array.from({ length: words.length / size }, (_, at) =>
      event(words.slice(at * size, (at + 1) * size).join('')),
    );
    const translator = new StreamTranslator('chat', 'messages', { id: 'a', createdAt: 1, model: 'm', request: {} });
    translator.push(Buffer.from(events.join('')));
    expect(translator.told).toMatchObject({ tokens: words.length });
  },
);
