/** Calls outside of the three dialects: embeddings, rerank, completions, transcriptions. */
import OpenAI, { toFile } from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { CALLER, eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { startEngine, type EngineOptions, type ScriptedEngine } from '../../support/scripted-engine.ts';

const JSON_TYPE = 'application/json';
const EMBEDDING = { object: 'embedding', index: 0, embedding: [0.5, -0.25] };
const usage = { prompt_tokens: 5, total_tokens: 5 };
const answer = (body: object) => ({ contentType: JSON_TYPE, body: JSON.stringify(body) });
const PLAIN = {
  '/v1/embeddings': answer({ object: 'list', data: [EMBEDDING], model: 'up', usage }),
  '/v1/rerank': answer({
    id: 'r',
    model: 'up',
    results: [{ index: 1, relevance_score: 0.9 }],
    usage: { total_tokens: 8 },
  }),
  '/v1/completions': answer({
    id: 'cmpl-1',
    object: 'text_completion',
    created: 1,
    model: 'up',
    choices: [{ index: 0, text: ' world', finish_reason: 'stop', logprobs: null }],
    usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
  }),
  '/v1/audio/transcriptions': answer({ text: 'Hello there.' }),
};

describe('calls outside of the dialects', () => {
  const running: { close: () => Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of running.splice(0).toReversed()) await each.close();
  });

  async function start(
    servers: Record<string, EngineOptions | EngineOptions[]>,
    annotations: Record<string, string> = {},
  ): Promise<{ gateway: TestGateway; engines: ScriptedEngine[]; openai: OpenAI }> {
    const gateway = await startGateway();
    running.push(gateway);
    const engines: ScriptedEngine[] = [];
    for (const [name, options] of Object.entries(servers)) {
      const own = await Promise.all([options].flat().map((one) => startEngine({ models: [name], ...one })));
      engines.push(...own);
      running.push(...own);
      gateway.cluster.serve({ name, annotations, ports: own.map(({ port }) => port) });
      await gateway.ready(name, own.length);
    }
    const openai = new OpenAI({ apiKey: 'k', baseURL: `${gateway.base}/v1`, maxRetries: 0 });
    return { gateway, engines, openai };
  }

  it('reach a server that has their routes alone, and are counted', async () => {
    const { gateway, engines, openai } = await start({ up: { dialects: [], plain: PLAIN } });
    const embedded = await openai.embeddings.create({ model: 'up', input: 'x', encoding_format: 'float' });
    expect(embedded.data[0]?.embedding).toEqual([0.5, -0.25]);
    const completed = await openai.completions.create({ model: 'up', prompt: 'Hello' });
    expect(completed.choices[0]?.text).toBe(' world');
    const ranked = await post(gateway, 'rerank', { model: 'up', query: 'q', documents: ['a', 'b'] });
    expect(await ranked.json()).toMatchObject({ results: [{ index: 1 }] });
    expect(ranked.headers.get('x-berth-route')).toMatch(/^native;/);
    expect(engines[0]?.received.map(({ path }) => path)).toEqual(['/v1/embeddings', '/v1/completions', '/v1/rerank']);
    const metrics = await gateway.registry.metrics();
    expect(metrics).toMatch(/berth_gateway_requests_total\{[^}]*gen_ai_operation_name="embeddings"[^}]*\} 1/);
    expect(metrics).toMatch(/gen_ai_client_token_usage_total\{[^}]*gen_ai_token_type="input"[^}]*\} 15/);
  });

  it('carry audio byte for byte, under the name that the server has', async () => {
    const { gateway, engines, openai } = await start(
      { up: { dialects: [], plain: PLAIN } },
      { 'berth.dev/model-aliases': 'whisper=up' },
    );
    await gateway.ready('whisper');
    const audio = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 31) % 256));
    const file = await toFile(audio, 'speech.wav', { type: 'audio/wav' });
    const heard = await openai.audio.transcriptions.create({ model: 'whisper', file, language: 'en' });
    expect(heard.text).toBe('Hello there.');
    const received = engines[0]?.received[0];
    expect(received?.headers['content-type']).toMatch(/^multipart\/form-data; ?boundary=/);
    expect(received?.text).toMatch(/name="model"\r\n\r\nup\r\n/);
    expect(received?.text).not.toContain('whisper');
    expect(received?.text).toContain(audio.toString('utf8'));
  });

  it('come as text and subtitles when they are asked for so', async () => {
    const plain = {
      '/v1/audio/transcriptions': { contentType: 'text/plain; charset=utf-8', body: '1\n00:00 --> 00:01\nHi' },
    };
    const { openai } = await start({ up: { dialects: [], plain } });
    const file = await toFile(Buffer.from('x'), 'a.wav');
    const heard: unknown = await openai.audio.transcriptions.create({ model: 'up', file, response_format: 'srt' });
    expect(heard).toContain('00:00 --> 00:01');
  });

  it('stream completions, and ask for their usage in the client’s place', async () => {
    const { gateway, engines, openai } = await start({ up: { dialects: [], plain: PLAIN } });
    const chunk = (text: string, finish: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'text_completion', created: 1, model: 'up', choices: [{ index: 0, text, finish_reason: finish }] })}\n\n`;
    const last = `data: ${JSON.stringify({ id: 'c', choices: [], usage: { prompt_tokens: 2, completion_tokens: 2 } })}\n\n`;
    const chunks = [chunk(' wor', null), chunk('ld', 'stop'), last, 'data: [DONE]\n\n'];
    engines[0]?.behave({ kind: 'raw', contentType: 'text/event-stream', chunks });
    const stream = await openai.completions.create({ model: 'up', prompt: 'Hello', stream: true });
    let text = '';
    for await (const part of stream) text += part.choices[0]?.text ?? '';
    expect(text).toBe(' world');
    expect(engines[0]?.received[0]?.body).toMatchObject({ stream_options: { include_usage: true } });
    await eventually(async () =>
      expect(await gateway.registry.metrics()).toMatch(/gen_ai_token_type="output"[^}]*\} 2/),
    );
  });

  it('go to the servers of the model that have the route, and fail over between them', async () => {
    const has = { plain: PLAIN };
    const { gateway, engines } = await start({ up: [{}, has, has] });
    engines[1]?.behave({ kind: 'status', status: 500 });
    for (let count = 0; count < 3; count += 1)
      expect((await post(gateway, 'embeddings', { model: 'up', input: 'x' })).status).toBe(200);
    expect(engines[0]?.received).toEqual([]);
  });

  it('are refused where no server has the route, with the models that have it', async () => {
    const { gateway } = await start({ talker: {}, embedder: { dialects: [], plain: PLAIN } });
    const refused = await post(gateway, 'embeddings', { model: 'talker', input: 'x' });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({
      error: {
        message: "The model 'talker' is not served at /embeddings. Models that are: 'embedder'.",
        type: 'invalid_request_error',
        param: 'model',
        code: 'unsupported_endpoint',
      },
    });
    const talk = { model: 'embedder', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] };
    const chat = await post(gateway, 'messages', talk);
    expect(chat.status).toBe(400);
    expect(await chat.text()).toContain(
      "'embedder' is not served at /chat/completions, /responses and /messages. It is at /embeddings, /rerank, /completions, /audio/transcriptions. Models that are: 'talker'.",
    );
    const list = (await (await fetch(`${gateway.base}/v1/models/embedder`)).json()) as object;
    expect(list).toMatchObject({
      dialects: { chat: 'none' },
      endpoints: expect.arrayContaining(['/rerank']) as unknown,
    });
  });

  it('name no model that the key may not use', async () => {
    const { gateway } = await start({ talker: {}, embedder: { plain: PLAIN } });
    gateway.callAs({ ...CALLER, models: ['talker'] });
    expect(await (await post(gateway, 'embeddings', { model: 'talker', input: 'x' })).text()).toContain(
      'No model of this key is.',
    );
    expect((await post(gateway, 'embeddings', { model: 'embedder', input: 'x' })).status).toBe(404);
  });

  it('count in the limits of the key, and answer errors of the engine as OpenAI does', async () => {
    const { gateway, engines } = await start({ up: { plain: PLAIN } });
    engines[0]?.behave({
      kind: 'status',
      status: 400,
      body: '{"object":"error","message":"too many inputs","code":400}',
    });
    gateway.callAs({ ...CALLER, keyId: 'tight', limits: { requestsPerMinute: 1 } });
    const refused = await post(gateway, 'embeddings', { model: 'up', input: ['x'] });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { message: 'too many inputs' } }]);
    expect((await post(gateway, 'rerank', { model: 'up' })).status).toBe(429);
  });

  const form = (...parts: string[]) => [...parts.map((part) => `--b\r\n${part}`), '--b--\r\n'].join('\r\n');
  const field = (name: string, value: string) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;

  it.each([
    ['no form', JSON_TYPE, '{"model":"up"}', 'names no boundary'],
    ['no model', 'multipart/form-data; boundary=b', form(field('file', 'x')), "Invalid 'model'"],
    [
      'two models',
      'multipart/form-data; boundary=b',
      form(field('model', 'a'), field('model', 'b')),
      "Invalid 'model'",
    ],
    ['a part without an end', 'multipart/form-data; boundary="b"', `--b\r\n${field('model', 'up')}`, 'has no end'],
    [
      'too many parts',
      'multipart/form-data; boundary=b',
      form(...Array<string>(65).fill(field('x', 'y'))),
      'more than 64',
    ],
  ])('with %s are refused: %s', async (_name, contentType, body, message) => {
    const { gateway, engines } = await start({ up: { plain: PLAIN } });
    const refused = await post(gateway, 'audio/transcriptions', body, { headers: { 'content-type': contentType } });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining(message) as unknown } });
    expect(engines[0]?.received).toEqual([]);
  });
});
