/** Calls and answers over sockets that differ from what most clients and engines send. */
import { afterEach, describe, expect, it } from 'vitest';
import { gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import type { EngineOptions, ScriptedEngine } from '../../support/scripted-engine.ts';

const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] };
const MESSAGES = { ...CHAT, max_tokens: 5 };
const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function start(options: EngineOptions): Promise<{ gateway: TestGateway; engine: ScriptedEngine }> {
  const { gateway, engines, close } = await gatewayTo(options);
  open.push(close);
  return { gateway, engine: engines[0] as ScriptedEngine };
}

/** The bytes of an answer, or of a stream. */
async function textOf(gateway: TestGateway, path: string, body: object, status = 200): Promise<string> {
  const response = await post(gateway, path, body);
  const text = await response.text();
  expect([response.status, text.slice(0, 300)]).toEqual([status, text.slice(0, 300)]);
  return text;
}

const message = { role: 'assistant', content: 'Hi there' };
const WHOLE = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
});
const EVENTS = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: message, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;

describe('an answer', () => {
  it.each(['', 'Application/JSON; charset=utf-8'])('counts with the media type %j', async (contentType) => {
    const { gateway, engine } = await start({ dialects: ['chat'] });
    for (const text of [WHOLE, `\ufeff${WHOLE}`]) {
      engine.behave({ kind: 'raw', contentType, chunks: [text.slice(0, 9), text.slice(9)] });
      expect(JSON.parse(await textOf(gateway, 'chat/completions', CHAT))).toMatchObject({ id: 'c' });
      expect(JSON.parse(await textOf(gateway, 'messages', MESSAGES))).toMatchObject({
        content: [{ text: 'Hi there' }],
      });
      for (const path of ['chat/completions', 'messages'])
        expect(await textOf(gateway, path, { ...MESSAGES, stream: true })).toContain('Hi there');
    }
  });

  it.each(['', 'TEXT/EVENT-STREAM'])('is a stream with the media type %j', async (contentType) => {
    const { gateway, engine } = await start({ dialects: ['chat'] });
    for (const text of [EVENTS, `\ufeff${EVENTS}`]) {
      engine.behave({ kind: 'raw', contentType, chunks: [text] });
      expect(await textOf(gateway, 'chat/completions', { ...CHAT, stream: true })).toBe(EVENTS);
      expect(await textOf(gateway, 'messages', { ...MESSAGES, stream: true })).toContain('message_stop');
    }
  });

  it('that is a page is none, whatever its media type', async () => {
    const { gateway, engine } = await start({ dialects: ['chat'] });
    engine.behave({ kind: 'raw', contentType: '', chunks: ['<html></html>'] });
    await textOf(gateway, 'chat/completions', CHAT, 502);
    await textOf(gateway, 'chat/completions', { ...CHAT, stream: true }, 502);
  });

  // A server that names no length ends its answer with the connection, wherever it died.
  it('that ends in its middle is none, and another server answers', async () => {
    const { gateway, engines, close } = await gatewayTo({ dialects: ['chat'] }, { dialects: ['chat'] });
    open.push(close);
    const cuts = ['Hi th', 'Hi there"}', '"stop"}'].map((last) => WHOLE.slice(0, WHOLE.indexOf(last) + last.length));
    const long = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(80_000) } }] });
    for (const cut of [...cuts, long.slice(0, -1), long.slice(0, -4)]) {
      engines[0]?.behave({ kind: 'raw', contentType: 'application/json', chunks: [cut] });
      engines[1]?.behave({ kind: 'raw', contentType: 'application/json', chunks: [`${WHOLE}\n`] });
      expect(await textOf(gateway, 'chat/completions', CHAT)).toBe(`${WHOLE}\n`);
    }
  });

  it('keeps the numbers of a call as the model and the client wrote them', async () => {
    const { gateway, engine } = await start({ dialects: ['chat'] });
    const input = '{"id":9223372036854775807,"ratio":1.0}';
    const call = { id: 'c', function: { name: 'f', arguments: input } };
    const body = { choices: [{ message: { role: 'assistant', tool_calls: [call] }, finish_reason: 'tool_calls' }] };
    engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [JSON.stringify(body)] });
    const history = `{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}`;
    const tools =
      '[{"name":"f","input_schema":{"type":"object","properties":{"id":{"maximum":9223372036854775807,"multipleOf":1.0}}}}]';
    const text = `{"model":"tiny","max_tokens":5,"temperature":1.0,"messages":[${history}],"tools":${tools}}`;
    const response = await post(gateway, 'messages', text);
    expect(await response.text()).toContain(`"input":${input}`);
    const sent = engine.received[0]?.text ?? '';
    expect(sent).toContain(JSON.stringify(input));
    expect(sent).toContain('"maximum":9223372036854775807,"multipleOf":1.0');
  });
});

describe('a response of a server that stores nothing', () => {
  const options = { engine: 'unknown', dialects: ['responses'] } as const;
  const response = (more: object = {}) => ({
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    store: false,
    previous_response_id: null,
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi there' }] }],
    tools: [{ type: 'function', name: 'f', parameters: { maximum: 1 } }],
    ...more,
  });
  const eventOf = (type: string, body: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, response: body })}\n\n`;
  const exact = (text: string): string => text.replaceAll('"maximum":1}', '"maximum":9223372036854775807}');
  const streamOf = (final: object): string =>
    exact(
      eventOf('response.created', { ...response(), status: 'in_progress', output: [] }) +
        eventOf('response.completed', final),
    );

  it('says what the gateway stores, and keeps all numbers', async () => {
    const { gateway, engine } = await start(options);
    engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [exact(JSON.stringify(response()))] });
    const first = await textOf(gateway, 'responses', { model: 'tiny', input: 'a' });
    expect(JSON.parse(first)).toMatchObject({ store: true, previous_response_id: null });
    expect(first).toContain('"maximum":9223372036854775807');
    engine.behave({
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [streamOf({ ...response(), id: 'resp_2' })],
    });
    const next = { model: 'tiny', input: 'b', previous_response_id: 'resp_1' };
    const stream = await textOf(gateway, 'responses', { ...next, stream: true });
    expect(stream.match(/"store":true,"previous_response_id":"resp_1"/g)).toHaveLength(2);
    expect(stream.match(/"maximum":9223372036854775807/g)).toHaveLength(2);
    const read = await (await fetch(`${gateway.base}/v1/responses/resp_2`)).text();
    expect(JSON.parse(read)).toMatchObject({ store: true, previous_response_id: 'resp_1' });
    expect(read).toContain('"maximum":9223372036854775807');
  });

  it('shows nothing of the inside when it has failed', async () => {
    const { gateway, engine } = await start(options);
    const error = { code: 'vllm-0.svc:8000', message: 'lost 10.42.0.17:8000', pod: 'vllm-0' };
    const failed = response({ status: 'failed', output: [], error });
    engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [JSON.stringify(failed)] });
    const text = await textOf(gateway, 'responses', { model: 'tiny', input: 'a' });
    expect((JSON.parse(text) as { error: unknown }).error).toEqual({ code: 'server_error', message: 'lost [address]' });
  });

  it('passes as it is where nothing is stored or continued', async () => {
    const { gateway, engine } = await start(options);
    const stream = streamOf(response());
    engine.behave({ kind: 'raw', contentType: 'text/event-stream', chunks: [stream] });
    expect(await textOf(gateway, 'responses', { model: 'tiny', input: 'a', store: false, stream: true })).toBe(stream);
  });

  it.each([
    ['stored', 6, 200],
    ['not stored, and whole', 18, 404],
  ])('in a stream whose last event is long is %s: %i MiB', async (_how, mebibytes, status) => {
    const { gateway, engine } = await start(options);
    const long = 'x'.repeat(2 ** 20);
    const content = Array.from({ length: mebibytes }, () => ({ type: 'output_text', text: long }));
    const output = [{ type: 'message', id: 'msg_1', role: 'assistant', content }];
    const stream = streamOf(response({ output, store: true }));
    const chunks = Array.from({ length: Math.ceil(stream.length / 65_536) }, (_, at) =>
      stream.slice(at * 65_536, (at + 1) * 65_536),
    );
    engine.behave({ kind: 'raw', contentType: 'text/event-stream', chunks });
    const got = await textOf(gateway, 'responses', { model: 'tiny', input: 'a', stream: true });
    expect([got.length > mebibytes * 2 ** 20, got.slice(-30), got.includes('event: error')]).toEqual([
      true,
      stream.slice(-30),
      false,
    ]);
    expect((await fetch(`${gateway.base}/v1/responses/resp_1`)).status).toBe(status);
  });
});

describe('a conversation', () => {
  it.each([
    ['chat', { dialects: ['chat'] }],
    ['responses alone', { engine: 'unknown', dialects: ['responses'] }],
  ] as [string, EngineOptions][])('is summed up by /responses/compact over %s, and goes on', async (_how, options) => {
    const { gateway, engine } = await start(options);
    engine.behave({ kind: 'answer', reply: { text: 'They counted to three.' } });
    const input = [
      { role: 'user', content: 'Count' },
      { role: 'assistant', content: '1 2 3' },
    ];
    const answer = JSON.parse(
      await textOf(gateway, 'responses/compact', { model: 'tiny', input, instructions: 'Be brief' }),
    ) as { object: string; output: { type: string }[]; usage?: unknown };
    expect(answer).toMatchObject({ object: 'response.compaction', output: [{ type: 'compaction' }] });
    expect(answer.usage).toBeDefined();
    expect(engine.received[0]?.text).toContain('Sum up this conversation');
    await textOf(gateway, 'responses', {
      model: 'tiny',
      input: [...answer.output, { role: 'user', content: 'Go on' }],
      store: false,
    });
    // No server opens what the gateway sealed.
    expect(engine.received[1]?.text).toContain('They counted to three.');
  });

  it('that has nothing to sum up is refused', async () => {
    const { gateway } = await start({});
    expect(await textOf(gateway, 'responses/compact', { model: 'tiny', input: 5 }, 400)).toContain('expected an array');
  });
});

describe('headers of Anthropic', () => {
  const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-2025-01-01,b-2025-02-02' };

  it('reach a server of their dialect, and no other', async () => {
    const { gateway, engine } = await start({ engine: 'unknown', dialects: ['messages'] });
    await post(gateway, 'messages', MESSAGES, { headers });
    expect(engine.received[0]?.headers).toMatchObject(headers);
    await post(gateway, 'chat/completions', CHAT, { headers });
    expect(engine.received[1]?.headers).not.toHaveProperty('anthropic-beta');
    await post(gateway, 'messages', MESSAGES, { headers: { 'anthropic-beta': 'a;\u00e9' } });
    expect(engine.received[2]?.headers).not.toHaveProperty('anthropic-beta');
  });
});

describe('calls beside the dialects', () => {
  const json = { contentType: 'application/json', body: '{"data":[{"score":0.5}]}' };
  const plain = {
    '/score': json,
    '/v1/images/generations': json,
    '/v1/images/edits': json,
    '/v1/audio/translations': { contentType: 'text/plain', body: 'Hello' },
    '/v1/audio/speech': { contentType: 'audio/mpeg', body: 'ID3\u0000sound' },
  };

  it('are passed on', async () => {
    const { gateway, engine } = await start({ plain });
    expect(await textOf(gateway, 'score', { model: 'tiny', text_1: 'a', text_2: 'b' })).toBe(json.body);
    expect(await textOf(gateway, 'images/generations', { model: 'tiny', prompt: 'a cat' })).toBe(json.body);
    const speech = await post(gateway, 'audio/speech', { model: 'tiny', input: 'Hi', voice: 'a' });
    expect([speech.headers.get('content-type'), await speech.text()]).toEqual(['audio/mpeg', 'ID3\u0000sound']);
    for (const [path, name, answer] of [
      ['audio/translations', 'file', 'Hello'],
      ['images/edits', 'image', json.body],
    ] as const) {
      const form = new FormData();
      form.append('model', 'tiny');
      form.append(name, new Blob(['x']), 'a.bin');
      const response = await fetch(`${gateway.base}/v1/${path}`, { method: 'POST', body: form });
      expect([path, response.status, await response.text()]).toEqual([path, 200, answer]);
    }
    expect(engine.received.map(({ path }) => path)).toEqual([
      '/score',
      '/v1/images/generations',
      '/v1/audio/speech',
      '/v1/audio/translations',
      '/v1/images/edits',
    ]);
    const list = (await (await fetch(`${gateway.base}/v1/models/tiny`)).json()) as { endpoints: string[] };
    expect(list.endpoints).toEqual([
      '/score',
      '/audio/translations',
      '/audio/speech',
      '/images/generations',
      '/images/edits',
    ]);
  });

  it('are refused where the answer would be events, or name what to fetch', async () => {
    const { gateway, engine } = await start({ plain });
    for (const [path, body] of [
      ['images/generations', { prompt: 'a', stream: true }],
      ['audio/speech', { input: 'a', stream_format: 'sse' }],
      ['audio/speech', { input: 'a', ref_audio: 'http://169.254.169.254/x' }],
    ] as const)
      await textOf(gateway, path, { model: 'tiny', ...body }, 400);
    expect(engine.received).toEqual([]);
  });

  it.each(['realtime', 'realtime/sessions', 'messages/batches', 'batches', 'files', 'conversations'])(
    'that nobody serves are refused by name: %s',
    async (path) => {
      const { gateway } = await start({});
      for (const method of ['GET', 'POST']) {
        const response = await fetch(`${gateway.base}/v1/${path}`, { method });
        expect([response.status, await response.text()]).toEqual([
          404,
          expect.stringMatching(/not (?:served|kept)\. /),
        ]);
      }
    },
  );
});
