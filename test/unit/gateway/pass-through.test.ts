import Anthropic from '@anthropic-ai/sdk';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CALLER, gatewayTo, gatewayToOwn, post, type TestGateway } from '../../support/model-gateway.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';

const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }] };
const BODIES = {
  'chat/completions': CHAT,
  responses: { model: 'tiny', input: 'Say hello' },
  messages: { ...CHAT, max_tokens: 50 },
} as const;

describe('a native call', () => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeEach(async () => {
    const started = await gatewayToOwn({ engine: 'vllm', dialects: ['chat', 'responses', 'messages'] });
    gateway = started.gateway;
    close = () => started.close();
    engine = started.engines[0] as ScriptedEngine;
  });
  afterEach(() => close());

  it('reaches the engine with the bytes of the client and comes back with the bytes of the engine', async () => {
    const answer = '{ "choices" : [ {"message":{"content":"Hi"}} ], "odd": 1.0 }';
    engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [answer.slice(0, 9), answer.slice(9)] });
    const request = { ...CHAT, unheard_of: { '10': 1, '2': 2 } };
    const response = await post(gateway, 'chat/completions', request);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('x-berth-route')).toMatch(/^native; endpoint=ep-[0-9a-z]{7}; attempt=1$/);
    expect(await response.text()).toBe(answer);
    expect(engine.received[0]?.body).toEqual(request);
  });

  it('sends a seed of 64 bits as the client wrote it, also when the body is written again', async () => {
    for (const seed of ['9007199254740993', '-9223372036854775807', '42']) {
      const text = `{"model":"tiny","messages":[{"role":"user","content":"\\"seed\\": 9007199254740995"}],"seed": ${seed},"stream":true}`;
      await (await post(gateway, 'chat/completions', text)).text();
      // Nothing but the question for usage is new.
      expect(engine.received.at(-1)?.text).toBe(`{"stream_options":{"include_usage":true},${text.slice(1)}`);
      const late = text.replace('"stream"', `"x":"${'y'.repeat(5000)}","stream_options":{"x":1},"stream"`);
      await (await post(gateway, 'chat/completions', late)).text();
      expect(engine.received.at(-1)?.text).toContain(`"seed":${seed}`);
    }
  });

  it.each(['chat/completions', 'messages', 'responses'])('sends a body of %s as the client wrote it', async (path) => {
    const more =
      path === 'responses' ? '"input":"Hi", "store" : false' : '"messages":[ {"role":"user","content":"Hi"}]';
    const text = ` {"model" : "tiny",${more},"max_tokens":1.0e1 }\n`;
    await (await post(gateway, path, text)).text();
    expect(engine.received.at(-1)?.text).toBe(text);
  });

  it.each([false, true])('sends a body of megabytes as the client wrote it, stream %s', async (stream) => {
    const text = `{"model":"tiny","stream_options":{"include_usage":true},"stream":${stream},"messages":[{"role":"user","content":"${'Hi, é '.repeat(2 ** 19)}"}]}`;
    await (await post(gateway, 'chat/completions', text)).text();
    // No difference of megabytes is printed.
    expect(engine.received.at(-1)?.text === text).toBe(true);
  });

  it.each(Object.entries(BODIES))('streams %s as the engine sends it', async (path, body) => {
    const response = await post(gateway, path, { ...body, stream: true });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    expect(response.headers.get('x-berth-route')).toContain('native');
    const text = await response.text();
    expect(text).toContain('Hello');
    expect(text).toContain('there');
    expect(engine.received[0]?.path).toBe(`/v1/${path}`);
  });

  it('asks for usage in every chat stream and shows it only to clients that asked', async () => {
    const hidden = await (await post(gateway, 'chat/completions', { ...CHAT, stream: true })).text();
    expect(engine.received[0]?.body.stream_options).toEqual({ include_usage: true });
    expect(hidden).not.toContain('prompt_tokens');
    expect(hidden).toContain('[DONE]');
    const asking = { ...CHAT, stream: true, stream_options: { include_usage: true } };
    expect(await (await post(gateway, 'chat/completions', asking)).text()).toContain('"prompt_tokens":10');
    const metrics = await gateway.registry.metrics();
    expect(metrics).toMatch(/gen_ai_client_token_usage_total\{[^}]*gen_ai_token_type="input"[^}]*\} 20/);
    expect(metrics).toMatch(/gen_ai_client_token_usage_total\{[^}]*gen_ai_token_type="output"[^}]*\} 10/);
  });

  it.each([false, true])('counts no tokens that cannot be counted, stream %s', async (stream) => {
    engine.behave({ kind: 'answer', reply: { text: 'Hello', inputTokens: 1e308, outputTokens: -1000 } });
    for (let count = 0; count < 2; count += 1)
      await (await post(gateway, 'chat/completions', { ...CHAT, stream })).text();
    const counted = (await gateway.registry.metrics()).match(/^gen_ai_client_token_usage_total\{.*\} (.*)$/gm) ?? [];
    expect(counted.filter((line) => !/ \d+$/.test(line))).toEqual([]);
  });

  it('never passes the key of the client on, nor headers of the engine back', async () => {
    engine.behave({ kind: 'status', status: 418, headers: { 'x-pod-ip': '10.1.2.3', server: 'uvicorn' } });
    const response = await post(gateway, 'chat/completions', CHAT, {
      headers: { authorization: 'Bearer secret', 'x-api-key': 'secret' },
    });
    expect(engine.received[0]?.headers).not.toHaveProperty('authorization');
    expect(engine.received[0]?.headers).not.toHaveProperty('x-api-key');
    expect(response.headers.has('x-pod-ip')).toBe(false);
    expect(response.headers.has('server')).toBe(false);
  });

  it('sends an alias under the name that the engine knows', async () => {
    const annotations = { 'berth.dev/model-aliases': 'gpt-4o' };
    gateway.cluster.serve({ ...CALLER, name: 'tiny-server', ports: [engine.port], annotations });
    await gateway.ready('gpt-4o');
    const response = await post(gateway, 'chat/completions', { ...CHAT, model: 'gpt-4o' });
    expect(response.status).toBe(200);
    expect(engine.received[0]?.body.model).toBe('tiny');
  });
});

describe('a translated call', () => {
  it('serves messages and responses from an engine that speaks chat alone, and says so', async () => {
    const { gateway, engines, close } = await gatewayTo({ engine: 'tgi', version: '3.3.0' });
    for (const stream of [false, true]) {
      for (const path of ['messages', 'responses'] as const) {
        const response = await post(gateway, path, { ...BODIES[path], stream });
        expect(response.headers.get('x-berth-route')).toContain('translated');
        const text = await response.text();
        expect(text).toContain('Hello');
        expect(text).toContain(path === 'messages' ? 'end_turn' : 'output_text');
      }
    }
    expect(new Set(engines[0]?.received.map(({ path }) => path))).toEqual(new Set(['/v1/chat/completions']));
    await close();
  });
});

describe('GET /models', () => {
  it('lists what the caller may use, with engine, dialects, endpoints and context length', async () => {
    const { gateway, engines, close } = await gatewayTo({
      engine: 'vllm',
      version: '0.24.0',
      dialects: ['chat', 'messages'],
    });
    gateway.cluster.serve({ name: 'private', namespace: 'tenant-b', ports: [engines[0]?.port ?? 0] });
    const list: unknown = await (await fetch(`${gateway.base}/v1/models`)).json();
    expect(list).toEqual({
      object: 'list',
      data: [
        {
          id: 'tiny',
          object: 'model',
          created: 1,
          owned_by: 'berth',
          engine: 'vllm',
          dialects: { chat: 'native', responses: 'translated', messages: 'translated' },
          endpoints: [],
          ready_endpoints: 1,
          context_length: 4096,
        },
      ],
    });
    const first = await fetch(`${gateway.base}/v1/models`);
    const etag = first.headers.get('etag') ?? 'none';
    expect(first.headers.get('cache-control')).toBe('private, no-cache');
    const again = await fetch(`${gateway.base}/v1/models`, { headers: { 'if-none-match': etag } });
    expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
    const other = await fetch(`${gateway.base}/v1/models`, {
      headers: { 'if-none-match': etag, 'anthropic-version': '2023-06-01' },
    });
    expect(other.status).toBe(200);
    const single = await fetch(`${gateway.base}/v1/models/tiny`);
    expect(await single.json()).toMatchObject({ id: 'tiny', object: 'model' });
    expect((await fetch(`${gateway.base}/v1/models/nothing`)).status).toBe(404);
    const anthropic = new Anthropic({ apiKey: 'k', baseURL: gateway.base });
    const model = { type: 'model', id: 'tiny', display_name: 'tiny', created_at: '1970-01-01T00:00:01.000Z' };
    expect((await anthropic.models.list()).data).toMatchObject([model]);
    expect(await anthropic.models.retrieve('tiny')).toMatchObject(model);
    await close();
  });

  it('keeps a model without a ready endpoint in the list, and calls to it get 503 with Retry-After', async () => {
    const { gateway, engines, close } = await gatewayTo({ dialects: ['chat', 'messages'] });
    const port = engines[0]?.port ?? 0;
    gateway.cluster.slice({ service: 'tiny-server', pod: `tiny-server-${port}`, port, conditions: { ready: false } });
    await gateway.ready('tiny', 0);
    for (const path of ['chat/completions', 'messages', 'responses'] as const) {
      const response = await post(gateway, path, BODIES[path]);
      expect(response.status).toBe(503);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await response.json()).toMatchObject({
        error: { message: expect.stringContaining('no ready server') as string },
      });
    }
    await close();
  });
});
