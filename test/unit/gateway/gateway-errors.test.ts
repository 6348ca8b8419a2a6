import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CALLER, gatewayTo, post, type TestGateway, eventually } from '../../support/model-gateway.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';

const MESSAGES = [{ role: 'user', content: 'Say hello' }];
const BODIES = {
  'chat/completions': { model: 'tiny', messages: MESSAGES },
  responses: { model: 'tiny', input: 'Say hello' },
  messages: { model: 'tiny', messages: MESSAGES, max_tokens: 50 },
} as const;
type Path = keyof typeof BODIES;
const PATHS = Object.keys(BODIES) as Path[];

async function expectError(path: Path, response: Response, status: number, texts: { type: string; message: string }) {
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toBe('application/json');
  const body = (await response.json()) as { type?: string; error: Record<string, unknown> };
  expect(body.error.message).toContain(texts.message);
  if (path !== 'messages') {
    expect(Object.keys(body.error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
    return;
  }
  expect(body).toMatchObject({
    type: 'error',
    error: { type: texts.type },
    request_id: expect.any(String) as string,
  });
  expect(response.headers.get('request-id')).toBeTruthy();
}

describe('errors in the shape of the dialect', () => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;

  beforeAll(async () => {
    const started = await gatewayTo({ engine: 'tgi' });
    gateway = started.gateway;
    engine = started.engines[0] as ScriptedEngine;
    close = started.close;
  });
  afterAll(() => close());

  it.each(PATHS)('%s: unknown model, with the names of the known ones', async (path) => {
    const response = await post(gateway, path, { ...BODIES[path], model: 'gpt-9' });
    await expectError(path, response, 404, { type: 'not_found_error', message: "Known models: 'tiny'" });
  });

  it.each(PATHS)('%s: a body that is not JSON', async (path) => {
    await expectError(path, await post(gateway, path, '{"model": '), 400, {
      type: 'invalid_request_error',
      message: 'not valid JSON',
    });
  });

  it.each(PATHS)('%s: content in more levels than anybody needs', async (path) => {
    const nested = (head: string, tail: string) => head.repeat(60_000) + tail.repeat(60_000);
    const results = nested('[{"type":"search_result","title":"t","source":"s","content":', '}]').replace(':}', ':"x"}');
    for (const content of [results, `[{"type":"tool_use","id":"a","name":"f","input":${nested('{"a":[', ']}')}}]`]) {
      const messages = `[{"role":"user","content":${content}}]`;
      const body = `{"model":"tiny","max_tokens":9,"${path === 'responses' ? 'input' : 'messages'}":${messages}}`;
      const response = await post(gateway, path, body);
      await expectError(path, response, 400, { type: 'invalid_request_error', message: 'more than 100 levels' });
    }
  });

  it.each(PATHS)('%s: a key without the scope', async (path) => {
    gateway.callAs({ ...CALLER, scopes: ['compute:read'] });
    const response = await post(gateway, path, BODIES[path]);
    gateway.callAs(CALLER);
    await expectError(path, response, 403, { type: 'permission_error', message: "lacks the scope 'models'" });
  });

  it.each(PATHS)('%s: a body of more than 32 MiB', async (path) => {
    const body = JSON.stringify({ ...BODIES[path], padding: 'x'.repeat(33 * 1024 * 1024) });
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const url = `${gateway.base}/v1/${path}`;
      const call = httpRequest(url, { method: 'POST', headers: { 'content-length': body.length } }, (response) => {
        resolve(response.statusCode);
        call.destroy();
      });
      call.on('error', reject);
      call.flushHeaders();
    });
    expect(status).toBe(413);
  });

  it.each([...PATHS, 'messages/count_tokens'] as const)('%s: a body of too many pieces', async (path) => {
    const tiny = '{},'.repeat(300_000);
    const body = `{"model":"tiny","messages":[{"role":"user","content":"Hi"}],"input":"Hi","x":[${tiny}{}]}`;
    const { received } = engine;
    const before = received.length;
    const response = await post(gateway, path, body);
    await expectError(path === 'messages/count_tokens' ? 'messages' : path, response, 413, {
      type: 'request_too_large',
      message: 'more than 500000 objects, arrays and commas',
    });
    expect(received.length).toBe(before);
  });

  it.each(PATHS)('%s: a compressed body', async (path) => {
    const response = await post(gateway, path, BODIES[path], { headers: { 'content-encoding': 'gzip' } });
    await expectError(path, response, 415, { type: 'invalid_request_error', message: 'Content-Encoding' });
  });

  it.each(PATHS)('%s: more than the key may send', async (path) => {
    gateway.callAs({ ...CALLER, keyId: `limited-${path}`, limits: { requestsPerMinute: 1 } });
    expect((await post(gateway, path, BODIES[path])).status).toBe(200);
    const response = await post(gateway, path, BODIES[path]);
    gateway.callAs(CALLER);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    await expectError(path, response, 429, { type: 'rate_limit_error', message: '1 requests per minute' });
  });

  it.each(PATHS)('%s: an error of the engine without its addresses', async (path) => {
    const leak = 'connect to http://10.42.0.17:8000/v1 failed: upstream vllm-0.vllm.team.svc.cluster.local';
    engine.behave({ kind: 'status', status: 400, body: JSON.stringify({ error: { message: leak } }) });
    const text = await (await post(gateway, path, BODIES[path])).text();
    engine.behave({ kind: 'answer', reply: { text: 'Hello there' } });
    expect(text).not.toMatch(/10\.42\.0\.17|svc\.cluster\.local/);
  });

  it('one concurrent call too many', async () => {
    gateway.callAs({ ...CALLER, keyId: 'one', limits: { concurrentRequests: 1 } });
    engine.behave({ kind: 'hang' });
    const before = engine.received.length;
    const controller = new AbortController();
    const first = post(gateway, 'responses', BODIES.responses, { signal: controller.signal }).catch(() => undefined);
    await eventually(() => expect(engine.received.length).toBe(before + 1));
    const second = await post(gateway, 'responses', BODIES.responses);
    controller.abort();
    await first;
    engine.behave({ kind: 'answer', reply: { text: 'Hello there' } });
    await expectError('responses', second, 429, { type: 'rate_limit_error', message: 'under way' });
    // The first client has left, so another call may begin.
    await eventually(async () => expect((await post(gateway, 'responses', BODIES.responses)).status).toBe(200));
    gateway.callAs(CALLER);
  });

  it('a token limit that a first call used up', async () => {
    gateway.callAs({ ...CALLER, keyId: 'tokens', limits: { tokensPerMinute: 20 } });
    engine.behave({ kind: 'answer', reply: { text: 'Hello', inputTokens: 15, outputTokens: 10 } });
    expect((await post(gateway, 'messages', BODIES.messages)).status).toBe(200);
    const response = await post(gateway, 'messages', BODIES.messages);
    gateway.callAs(CALLER);
    await expectError('messages', response, 429, { type: 'rate_limit_error', message: '20 tokens per minute' });
  });

  it('a token limit counts an image as one, not by its bytes', async () => {
    gateway.callAs({ ...CALLER, keyId: 'images', limits: { tokensPerMinute: 10_000 } });
    const url = `data:image/png;base64,${'iVBORw0KGgo'.repeat(95_326)}`;
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }];
    engine.behave({ kind: 'hang' });
    const before = engine.received.length;
    const controller = new AbortController();
    const { signal } = controller;
    const first = post(gateway, 'chat/completions', { model: 'tiny', messages }, { signal }).catch(() => undefined);
    await eventually(() => expect(engine.received.length).toBe(before + 1));
    engine.behave({ kind: 'answer', reply: { text: 'Hello there' } });
    const second = await post(gateway, 'chat/completions', BODIES['chat/completions']);
    controller.abort();
    await first;
    gateway.callAs(CALLER);
    expect(second.status).toBe(200);
  });

  it.each(PATHS)('%s: a method that it does not have', async (path) => {
    const response = await fetch(`${gateway.base}/v1/${path}`);
    expect(response.headers.get('allow')).toBe('POST, OPTIONS');
    await expectError(path, response, 405, { type: 'invalid_request_error', message: 'GET is not allowed' });
  });

  it('counts every outcome', async () => {
    const metrics = await gateway.registry.metrics();
    for (const outcome of ['ok', 'client_error', 'rate_limited', 'client_closed'])
      expect(metrics).toContain(`berth_outcome="${outcome}"`);
    expect(metrics).toContain('gen_ai_request_model="unknown"');
    expect(metrics).not.toContain('gpt-9');
  });
});
