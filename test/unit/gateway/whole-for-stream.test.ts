import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import { chatWhole, messagesWhole, responsesWhole } from '../../support/engine-answers.ts';
import type { EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';
import { COLLECT } from './dialects/engines.ts';

const REPLY = {
  text: 'Hello there',
  reasoning: 'Think.',
  calls: [{ id: 'c', name: 'f', arguments: '{"a":1}' }],
};
const MESSAGES = [{ role: 'user', content: 'Say hello' }];
const BODIES = {
  chat: { model: 'tiny', messages: MESSAGES, stream_options: { include_usage: true } },
  responses: { model: 'tiny', input: 'Say hello' },
  messages: { model: 'tiny', messages: MESSAGES, max_tokens: 50 },
} as const;
const PATHS = { chat: 'chat/completions', responses: 'responses', messages: 'messages' } as const;
const CLIENTS = ['chat', 'responses', 'messages'] as const;
const WHOLE = { chat: chatWhole, responses: responsesWhole, messages: messagesWhole };

describe.each([
  ['native', { engine: 'unknown', dialects: CLIENTS }],
  ['translated', { engine: 'unknown', dialects: ['chat'] }],
] as [string, EngineOptions][])('a whole answer to a %s call for a stream', (route, options) => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const started = await gatewayTo(options);
    ({ gateway, close } = started);
    engine = started.engines[0] as ScriptedEngine;
  });
  afterAll(() => close());

  it.each(CLIENTS)('becomes a stream that a strict %s client reads', async (client) => {
    const dialect = route === 'native' ? client : 'chat';
    const answer = JSON.stringify(WHOLE[dialect]('tiny', REPLY));
    const contentType = 'application/json; charset=utf-8';
    engine.behave({ kind: 'raw', contentType, chunks: [answer.slice(0, 20), answer.slice(20)] });
    const response = await post(gateway, PATHS[client], { ...BODIES[client], stream: true });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    expect(COLLECT[client](await response.text())).toMatchObject({
      text: 'Hello there',
      // The scripted server of the responses dialect has no reasoning.
      reasoning: dialect === 'responses' ? '' : 'Think.',
      calls: [{ name: 'f', arguments: '{"a":1}' }],
      usage: { input: 10, output: 5 },
    });
  });

  it.each(CLIENTS)('of %s is counted', async (client) => {
    const before = await tokens();
    const dialect = route === 'native' ? client : 'chat';
    const answer = JSON.stringify(WHOLE[dialect]('tiny', REPLY));
    engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [answer] });
    await (await post(gateway, PATHS[client], { ...BODIES[client], stream: true })).text();
    expect(await tokens()).toBe(before + 10);
  });

  async function tokens(): Promise<number> {
    const metrics = await gateway.registry.metrics();
    return Number(
      /gen_ai_client_token_usage_total\{[^}]*gen_ai_token_type="input"[^}]*\} (\d+)/.exec(metrics)?.[1] ?? 0,
    );
  }

  it.each([
    ['{"error":{"message":"bad schema","type":"BadRequestError","code":400}}', 400],
    ['{"object":"error","message":"bad schema","type":"BadRequestError","code":400}', 400],
    ['{"message":"bad schema","code":400,"object":"error","type":"BadRequestError"}', 400],
    ['{"error":"bad schema","error_type":"validation"}', 400],
    ['{"error":{"message":"bad schema"}}', 502],
  ])('that is an error gets its status in every dialect: %s', async (body, status) => {
    for (const client of CLIENTS) {
      for (const stream of [false, true]) {
        engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [body] });
        const response = await post(gateway, PATHS[client], { ...BODIES[client], stream });
        expect([response.status, await response.text()]).toEqual([status, expect.stringContaining('bad schema')]);
        engine.behave({ kind: 'answer', reply: REPLY });
        await (await post(gateway, PATHS[client], BODIES[client])).text();
      }
    }
  });

  it('that is nonsense is no answer', async () => {
    for (const body of ['{"hello":1}', '[]', '<html>']) {
      engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [body] });
      expect((await post(gateway, 'chat/completions', { ...BODIES.chat, stream: true })).status).toBe(502);
      engine.behave({ kind: 'answer', reply: REPLY });
      await (await post(gateway, 'chat/completions', BODIES.chat)).text();
    }
  });
});

it('a whole answer to a chat stream keeps all of its answers, and the probabilities of their tokens', async () => {
  const { gateway, engines, close } = await gatewayTo({ engine: 'unknown', dialects: ['chat'] });
  const logprobs = { content: [{ token: 'a', logprob: -1.5, bytes: [97], top_logprobs: [] }], refusal: null };
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const choices = [
    { index: 0, message: { role: 'assistant', content: 'a' }, logprobs, finish_reason: 'stop' },
    { index: 1, message: { role: 'assistant', content: 'b', tool_calls: [call] }, finish_reason: 'tool_calls' },
  ];
  const answer = { id: 'c', object: 'chat.completion', choices, usage: { prompt_tokens: 10, completion_tokens: 5 } };
  engines[0]?.behave({ kind: 'raw', contentType: 'application/json', chunks: [JSON.stringify(answer)] });
  const body = { ...BODIES.chat, n: 2, logprobs: true, stream: true };
  const events = (await (await post(gateway, 'chat/completions', body)).text()).split('\n\n');
  const [first, second, done] = events.map((event) => event.slice('data: '.length));
  expect(JSON.parse(first ?? '')).toMatchObject({
    object: 'chat.completion.chunk',
    choices: [
      { index: 0, delta: { content: 'a' }, logprobs, finish_reason: 'stop' },
      { index: 1, delta: { content: 'b', tool_calls: [{ index: 0, ...call }] }, finish_reason: 'tool_calls' },
    ],
  });
  expect([JSON.parse(second ?? ''), done]).toMatchObject([{ choices: [], usage: answer.usage }, '[DONE]']);
  await close();
});

it('a failed response is an answer, as OpenAI gives it', async () => {
  const { gateway, engines, close } = await gatewayTo({ engine: 'unknown', dialects: ['chat', 'responses'] });
  const body = {
    id: 'resp_1',
    object: 'response',
    status: 'failed',
    output: [],
    error: { code: 'server_error', message: 'x' },
  };
  engines[0]?.behave({ kind: 'raw', contentType: 'application/json', chunks: [JSON.stringify(body)] });
  const response = await post(gateway, 'responses', BODIES.responses);
  expect([response.status, await response.json()]).toEqual([200, body]);
  await close();
});
