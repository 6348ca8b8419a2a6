import { afterEach, describe, expect, it } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import type { Secret } from '../../../src/kube/types.ts';
import type { ModelServerSpec } from '../../../src/resources/model-servers/model-server.ts';
import {
  CALLER,
  eventually,
  type GatewayOptions,
  post,
  startGateway,
  type TestGateway,
} from '../../support/model-gateway.ts';
import { type OutsideEngine, outerAddress, startOutside } from '../../support/outside-server.ts';
import { type Behaviour, type EngineOptions, startEngine } from '../../support/scripted-engine.ts';

const KEY = 'sk-outside-0123456789';
const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];
const PRICE = { input: '1', output: '2', currency: 'USD' };

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

function secretWith(key: string, version = 1, owner = 'berth-system/provider'): Secret {
  return {
    metadata: {
      name: 'provider-key',
      uid: 'secret',
      resourceVersion: String(version),
      annotations: { 'berth.dev/model-credential-for': owner },
    },
    data: { 'api-key': Buffer.from(key).toString('base64') },
  };
}

interface World {
  gateway: TestGateway;
  outside: OutsideEngine;
  secret: { now: Secret };
  /** Writes the ModelServer anew. */
  serve: (spec?: Partial<ModelServerSpec>) => void;
}

const MODEL = { name: 'big', upstreamName: 'big-2026', price: PRICE };

async function world(engine: EngineOptions = {}, options: GatewayOptions = {}): Promise<World> {
  const outside = await startOutside({ models: ['big-2026'], apiKey: KEY, ...engine });
  closers.push(() => outside.close());
  const secret = { now: secretWith(KEY) };
  const engineSecrets = { names: ['provider-key'], read: () => Promise.resolve(secret.now) };
  const gateway = await startGateway(undefined, { engineSecrets, ...options });
  closers.push(() => gateway.close());
  const { baseURL, ca: caBundle } = outside;
  const serve = (spec: Partial<ModelServerSpec> = {}): void =>
    gateway.cluster.serveOutside('provider', {
      baseURL,
      caBundle,
      credentialSecret: 'provider-key',
      models: [MODEL],
      ...spec,
    });
  return { gateway, outside, secret, serve };
}

async function ready(spec: Partial<ModelServerSpec> = {}, engine: EngineOptions = {}, options: GatewayOptions = {}) {
  const made = await world(engine, options);
  made.serve(spec);
  await made.gateway.ready('big');
  return made;
}

function ask(gateway: TestGateway, more: object = {}, headers: Record<string, string> = {}): Promise<Response> {
  return post(gateway, 'chat/completions', { model: 'big', messages: MESSAGES, ...more }, { headers });
}

describe('a server outside the cluster', () => {
  it('gets calls under its own name of the model, with the credential and nothing of the caller’s', async () => {
    const { gateway, outside } = await ready();
    const answer = await ask(
      gateway,
      { store: true, service_tier: 'priority' },
      {
        authorization: 'Bearer of-the-caller',
        'x-api-key': 'of-the-caller',
        cookie: 'of-the-caller',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      },
    );
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { choices: [{ message: { content: 'Hello there' } }] },
    ]);
    const [call] = outside.received;
    expect(call?.path).toBe('/v1/chat/completions');
    expect(call?.body).toMatchObject({ model: 'big-2026', messages: MESSAGES });
    expect(call?.headers.authorization).toBe(`Bearer ${KEY}`);
    const said = JSON.stringify([call?.headers, call?.body]);
    for (const word of ['of-the-caller', 'traceparent', 'store', 'service_tier']) expect(said).not.toContain(word);
    expect(outside.probes).toEqual([]);
  });

  it('is shown in the list, with its price', async () => {
    const { gateway } = await ready({ endpoints: ['/embeddings'] });
    expect(await (await fetch(`${gateway.base}/v1/models/big`)).json()).toMatchObject({
      outside: true,
      endpoints: ['/embeddings'],
      dialects: { chat: 'native', responses: 'translated', messages: 'translated' },
      price_per_million_tokens: { input: '1', cached_input: '1', output: '2', currency: 'USD' },
    });
  });

  it('is told the credential in the header of its dialect, and which version of messages this is', async () => {
    const { gateway, outside } = await ready({ dialects: ['messages'] }, { dialects: ['messages'] });
    expect((await ask(gateway)).status).toBe(200);
    const { headers } = outside.received[0] ?? {};
    expect([headers?.['x-api-key'], headers?.authorization, headers?.['anthropic-version']]).toEqual([
      KEY,
      undefined,
      '2023-06-01',
    ]);
  });

  it.each<[string, object]>([
    ['mcp_servers', { mcp_servers: [{ url: 'https://example.com' }] }],
    ['file_id', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] }],
    ['tools', { tools: [{ type: 'code_interpreter' }] }],
    ['web_search_options', { web_search_options: {} }],
    ['speed', { speed: 'fast' }],
    ['models', { models: ['dearer'] }],
  ])('does nothing there that costs the account: %s', async (name, more) => {
    const { gateway, outside } = await ready();
    const answer = await ask(gateway, more);
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(name)]);
    expect(outside.received).toEqual([]);
  });

  it('gets neither members nor trials that might change its price', async () => {
    const { gateway, outside } = await ready({ dialects: ['messages'] }, { dialects: ['messages'] });
    const body = { model: 'big', max_tokens: 5, messages: MESSAGES, temperature: 0.5, turbo: true, diagnostics: {} };
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07,interleaved-thinking-2025-05-14' };
    const answer = await post(gateway, 'messages', body, { headers });
    const [call] = outside.received;
    expect([answer.status, call?.body]).toEqual([
      200,
      { model: 'big-2026', max_tokens: 5, messages: MESSAGES, temperature: 0.5 },
    ]);
    expect(call?.headers['anthropic-beta']).toBe('interleaved-thinking-2025-05-14');
  });

  it('is alone in that: an engine in the cluster gets members that nobody here knows', async () => {
    const { gateway } = await world();
    const engine = await startEngine({ models: ['tiny'] });
    closers.push(() => engine.close());
    gateway.cluster.serve({ name: 'tiny', ports: [engine.port] });
    await gateway.ready('tiny');
    const more = { speed: 'fast', models: ['other'], top_n_sigma: 1 };
    const answer = await post(gateway, 'chat/completions', { model: 'tiny', messages: MESSAGES, ...more });
    expect([answer.status, engine.received[0]?.body]).toMatchObject([200, more]);
  });

  it('is not asked for a search that an agent only declares', async () => {
    const { gateway, outside } = await ready({ dialects: ['responses'] }, { dialects: ['responses'] });
    const f = { type: 'function', name: 'f', parameters: { type: 'object' } };
    const answer = await post(gateway, 'responses', { model: 'big', input: 'Hi', tools: [{ type: 'web_search' }, f] });
    expect([answer.status, outside.received[0]?.body]).toMatchObject([200, { tools: [f], store: false }]);
  });
});

describe('what a server outside says of the account', () => {
  it.each<[number, string, Behaviour]>([
    [502, 'refused the credential', { kind: 'status', status: 401, body: `{"error":{"message":"bad key ${KEY}"}}` }],
    [502, 'wants its account to be paid', { kind: 'status', status: 402 }],
    [502, 'does not know the model', { kind: 'status', status: 404 }],
    [502, 'redirect', { kind: 'status', status: 307, headers: { location: 'http://169.254.169.254/latest/' } }],
    [
      429,
      'takes no more calls',
      {
        kind: 'status',
        status: 429,
        headers: { 'retry-after': '7' },
        body: '{"error":{"message":"org-secret","code":"insufficient_quota"}}',
      },
    ],
  ])('is %d for a caller: %s', async (status, words, behaviour) => {
    const { gateway, outside } = await ready();
    outside.behave(behaviour);
    const answer = await ask(gateway);
    const text = await answer.text();
    expect([answer.status, text]).toEqual([status, expect.stringContaining(words)]);
    for (const secret of [KEY, 'org-secret', '169.254', outerAddress()])
      expect(text + JSON.stringify([...answer.headers])).not.toContain(secret);
    if (status === 429) expect(answer.headers.get('retry-after')).toBe('7');
    expect(outside.received.length).toBeGreaterThan(0);
  });

  it('never shows a key that was changed while the call was under way', async () => {
    const { gateway, outside, secret } = await ready();
    const gate = Promise.withResolvers<void>();
    const chunks = ['{"error":', `{"message":"no ${KEY}","code":400}}`];
    outside.behave(
      { kind: 'raw', contentType: 'application/json', chunks, gate: gate.promise },
      { kind: 'status', status: 401 },
    );
    const answer = ask(gateway);
    await eventually(() => expect(outside.received).toHaveLength(1));
    secret.now = secretWith('sk-new', 2);
    gateway.cluster.serveOutside('provider', { baseURL: outside.baseURL, caBundle: outside.ca, models: [MODEL] });
    await eventually(async () => expect(await (await ask(gateway)).text()).toContain('refused the credential'));
    gate.resolve();
    expect(await (await answer).text()).toContain('[credential]');
  });
});

describe('the way to a server outside', () => {
  it('is safe or not taken: a certificate of another authority', async () => {
    const { gateway, outside, serve } = await world();
    const other = await startOutside();
    closers.push(() => other.close());
    serve({ caBundle: other.ca });
    await gateway.ready('big');
    expect((await ask(gateway)).status).toBe(502);
    serve();
    await eventually(async () => expect((await ask(gateway)).status).toBe(200));
    expect(outside.received.length).toBeGreaterThan(0);
  });

  it.each<[string, Partial<ModelServerSpec>]>([
    ['http without a word', { baseURL: 'http://192.0.2.1/v1' }],
    ['no authority', { caBundle: 'none' }],
    ['this machine', { baseURL: 'https://127.0.0.1/v1' }],
    ['this machine as a number', { baseURL: 'https://2130706433/v1' }],
    ['the metadata of a cloud', { baseURL: 'http://169.254.169.254/v1', allowHTTP: true }],
  ])('is none: %s', async (_what, spec) => {
    const { gateway, serve } = await world();
    serve(spec);
    await gateway.ready('big', 0);
    expect((await ask(gateway)).status).toBe(503);
  });

  it('is none to a name of this machine', async () => {
    const engine = await startEngine({ models: ['big-2026'] });
    closers.push(() => engine.close());
    const { gateway, serve } = await world();
    serve({ baseURL: `http://localhost:${engine.port}/v1`, allowHTTP: true, credentialSecret: undefined });
    await gateway.ready('big');
    expect((await ask(gateway)).status).toBe(502);
    expect(engine.connections).toBe(0);
  });

  it('is http where the operator says so', async () => {
    const engine = await startEngine({ models: ['big-2026'], address: outerAddress() });
    closers.push(() => engine.close());
    const { gateway, serve } = await world();
    serve({ baseURL: `${engine.origin}/v1`, allowHTTP: true });
    await gateway.ready('big');
    expect((await ask(gateway)).status).toBe(200);
  });
});

describe('who may call a server outside', () => {
  const as = (namespace: string): Principal => ({ ...CALLER, namespace });

  it('is whom the operator chooses by labels, also when these change', async () => {
    const { gateway, outside, serve } = await world();
    serve({ tenants: { matchLabels: { tier: 'paid' } } });
    gateway.cluster.serveOutside('for-all', { baseURL: outside.baseURL, models: [{ name: 'small' }] });
    gateway.cluster.namespaces.put({ metadata: { name: 'tenant-a', labels: { tier: 'paid' } } });
    gateway.cluster.namespaces.put({ metadata: { name: 'tenant-b', labels: { tier: 'free' } } });
    await gateway.ready('big');
    await gateway.ready('small');
    gateway.callAs(as('tenant-b'));
    expect((await ask(gateway)).status).toBe(404);
    await gateway.ready('small');
    gateway.callAs(as('berth-system'));
    expect((await ask(gateway)).status).toBe(404);
    gateway.callAs(as('tenant-a'));
    gateway.cluster.namespaces.put({ metadata: { name: 'tenant-a', labels: {} } });
    await eventually(async () => expect((await ask(gateway)).status).toBe(404));
  });

  it.each([true, false])('is no more who has a call under way when the label goes, as a stream: %s', async (stream) => {
    const { gateway, outside, serve } = await world();
    serve({ tenants: { matchLabels: { tier: 'paid' } } });
    for (const name of ['tenant-a', 'tenant-b'])
      gateway.cluster.namespaces.put({ metadata: { name, labels: { tier: 'paid' } } });
    await gateway.ready('big');
    outside.behave(stream ? { kind: 'stall', reply: { text: 'one two three' }, events: 2 } : { kind: 'hang' });
    const calls = ['tenant-a', 'tenant-b'].map(async (tenant, before) => {
      await eventually(() => expect(outside.received).toHaveLength(before));
      gateway.callAs(as(tenant));
      return (await ask(gateway, { stream })).text();
    });
    await eventually(() => expect(outside.received).toHaveLength(2));
    gateway.cluster.namespaces.put({ metadata: { name: 'tenant-a', labels: {} } });
    expect(await calls[0]).toContain("has taken the model 'big' away from this tenant");
    await eventually(() => expect(outside.received[0]?.abortedAt).toBeDefined());
    expect(outside.received[1]?.abortedAt).toBeUndefined();
    gateway.cluster.namespaces.put({ metadata: { name: 'tenant-b', labels: {} } });
    await calls[1];
  });

  it('is nobody where it is not in Berth’s own namespace', async () => {
    const { gateway, outside } = await world();
    gateway.cluster.serveOutside('mine', { baseURL: outside.baseURL, models: [{ name: 'mine' }] }, 'tenant-a');
    gateway.cluster.serveOutside('known', { baseURL: outside.baseURL, models: [{ name: 'known' }] });
    await gateway.ready('known');
    expect((await fetch(`${gateway.base}/v1/models/mine`)).status).toBe(404);
  });

  it('does not get there by the name of a model inside', async () => {
    const { gateway, serve, outside } = await world();
    const inside = await startEngine({ models: ['big'] });
    closers.push(() => inside.close());
    gateway.cluster.serve({ name: 'big', ports: [inside.port] });
    await gateway.ready('big');
    serve({ models: [{ name: 'big' }, MODEL].slice(0, 1) });
    gateway.cluster.serveOutside('second', { baseURL: outside.baseURL, models: [{ name: 'other' }] });
    await gateway.ready('other');
    for (let call = 0; call < 4; call += 1) expect((await ask(gateway)).status).toBe(200);
    expect([inside.received.length, outside.received.length]).toEqual([4, 0]);
  });
});

describe('a server outside beside the others', () => {
  it('takes what a model inside cannot, at its own price', async () => {
    const { gateway, outside, serve } = await world();
    serve();
    const inside = await startEngine({ models: ['small'] });
    closers.push(() => inside.close());
    gateway.cluster.serve({ name: 'small', ports: [inside.port], annotations: { 'berth.dev/model-fallbacks': 'big' } });
    await Promise.all([gateway.ready('small'), gateway.ready('big')]);
    inside.behave({ kind: 'status', status: 500 });
    const answer = await ask(gateway, { model: 'small' });
    expect([answer.status, answer.headers.get('x-berth-route')]).toEqual([
      200,
      expect.stringContaining('fallback=big'),
    ]);
    expect(outside.received).toHaveLength(1);
  });

  it('hands its calls to a model inside when its account is refused', async () => {
    const inside = await startEngine({ models: ['small'] });
    closers.push(() => inside.close());
    const { gateway, outside } = await ready({ models: [{ ...MODEL, fallbacks: { models: ['small'] } }] });
    gateway.cluster.serve({ name: 'small', ports: [inside.port] });
    await gateway.ready('small');
    outside.behave({ kind: 'status', status: 401 });
    expect((await ask(gateway)).headers.get('x-berth-route')).toContain('fallback=small; reason=error');
  });

  it('keeps its streams when the resource goes and the cut is told as that of others', async () => {
    const { gateway, outside, serve } = await ready();
    const gate = Promise.withResolvers<void>();
    const chunk = (text: string): string => `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`;
    const end = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
    outside.behave({
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [chunk('a'), chunk('b') + end],
      gate: gate.promise,
    });
    const stream = await ask(gateway, { stream: true });
    gateway.cluster.modelServers.remove('berth-system/provider');
    await eventually(async () => expect((await fetch(`${gateway.base}/v1/models/big`)).status).toBe(404));
    gate.resolve();
    expect(await stream.text()).toMatch(/"a"[\s\S]*"b"[\s\S]*\[DONE\]/);
    serve();
    await gateway.ready('big');
    outside.behave({ kind: 'break', reply: { text: 'one two three' }, events: 2 });
    expect(await (await ask(gateway, { stream: true })).text()).toContain('broke off');
  });

  it('gets no calls without the credential that it names', async () => {
    const { gateway, outside, secret, serve } = await world();
    secret.now = secretWith(KEY, 1, 'berth-system/another');
    serve();
    await gateway.ready('big', 0);
    expect([(await ask(gateway)).status, outside.connections]).toEqual([503, 0]);
  });
});
