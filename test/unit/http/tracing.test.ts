import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ModelGateway } from '../../../src/gateway/gateway.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { type GpuInstance, TRACEPARENT } from '../../../src/resources/instances/gpu-instance.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { gatewayOn } from '../../support/model-gateway.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';
import { startTestTracing, type TestTracing } from '../../support/tracing/test-tracing.ts';
import { waitFor } from '../../support/wait-for.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const PROMPT = 'What nobody else may read';
const CALL = { model: 'tiny', messages: [{ role: 'user', content: PROMPT }] };

let tracing: TestTracing;
let engines: ScriptedEngine[];
let gateway: ModelGateway | undefined;
let api: LoneApi;
let lines: Record<string, unknown>[];
const create = vi.fn<(type: unknown, wanted: GpuInstance) => Promise<never>>();

beforeEach(async () => {
  tracing = await startTestTracing();
  engines = [
    await startEngine({ engine: 'vllm', models: ['tiny'] }),
    await startEngine({ engine: 'vllm', models: ['tiny'] }),
  ];
  await start(true);
});
afterEach(async () => {
  await stop();
  for (const engine of engines) await engine.close();
});

async function start(traced: boolean): Promise<void> {
  lines = [];
  const cluster = new ModelCluster();
  cluster.serve({ name: 'tiny-server', ports: engines.map(({ port }) => port) });
  api = await startLoneApi({
    tenants: ['a'],
    keys: { a: { scopes: ['compute:read', 'compute:write', 'models'] } },
    log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) }),
    ...(traced && { tracer: tracing.tracer }),
    client: { create: create.mockRejectedValue(new Error('no cluster')) } as unknown as KubeClient,
    models: (process) => {
      gateway = gatewayOn(cluster, process);
      return gateway;
    },
  });
  await waitFor('the engines to be ready', async () =>
    (await (await call('/models')).text()).includes('"ready_endpoints":2'),
  );
}

async function stop(): Promise<void> {
  if (gateway === undefined) return;
  await api.close();
  await gateway.stop();
  gateway = undefined;
}

interface Sent {
  body?: object;
  headers?: Record<string, string>;
  key?: string;
  signal?: AbortSignal;
}

function call(path: string, { body, headers, key = 'a', signal }: Sent = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${api.address.port}/api/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
}

/** What was traced, but for the question whether the engines are ready. */
async function spans() {
  await stop();
  return (await tracing.end()).filter(({ name }) => name !== 'GET /api/v1/models');
}

it('traces a model call below its client, and the engine below the gateway', async () => {
  await (
    await call('/chat/completions', { body: CALL, headers: { traceparent: PARENT, tracestate: 'rojo=1' } })
  ).text();
  const [attempt, request, ...more] = await spans();
  expect(more).toEqual([]);
  expect(request).toMatchObject({
    traceId: TRACE,
    parentId: 'b7ad6b7169203331',
    kind: 'server',
    name: 'POST /api/v1/chat/completions',
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/api/v1/chat/completions',
      'http.response.status_code': 200,
      'berth.tenant': 'a',
      'gen_ai.request.model': 'tiny',
      'berth.gateway.outcome': 'ok',
      'berth.gateway.route': 'native',
      'berth.gateway.attempts': 1,
    },
  });
  expect(attempt).toMatchObject({ traceId: TRACE, parentId: request?.spanId, kind: 'client', name: 'chat tiny' });
  expect(attempt?.attributes).toEqual({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'vllm',
    'gen_ai.request.model': 'tiny',
    'gen_ai.request.stream': false,
    'gen_ai.usage.input_tokens': expect.any(Number) as number,
    'gen_ai.usage.output_tokens': expect.any(Number) as number,
    'gen_ai.usage.cache_read.input_tokens': expect.any(Number) as number,
    'server.address': '127.0.0.1',
    'server.port': expect.any(Number) as number,
    'berth.endpoint': expect.stringMatching(/^ep-/) as string,
  });
  const [received] = engines.flatMap((engine) => engine.received);
  expect(received?.headers.traceparent).toBe(`00-${TRACE}-${attempt?.spanId}-01`);
  expect(received?.headers.tracestate).toBe('rojo=1');
  expect(lines.find(({ path }) => path === '/api/v1/chat/completions')?.['trace_id']).toBe(TRACE);
});

it('has a span for each attempt, and says which failed and why', async () => {
  const [first, second] = engines;
  first?.behave({ kind: 'status', status: 503, body: `{"error":{"message":"no room for ${PROMPT}"}}` });
  second?.behave({ kind: 'reset' });
  await (await call('/chat/completions', { body: CALL })).text();
  const found = await spans();
  const request = found.at(-1);
  expect(request).toMatchObject({ kind: 'server', attributes: { 'berth.gateway.attempts': 2 } });
  const attempts = found.slice(0, -1);
  expect(attempts.map(({ failed, parentId }) => [failed, parentId])).toEqual([
    [true, request?.spanId],
    [true, request?.spanId],
  ]);
  const errors = attempts.map(({ attributes }) => String(attributes['error.type']));
  expect(errors.toSorted()).toEqual(['503', 'SocketError']);
  // Neither what the tenant wrote, nor what the engine answered, nor the key.
  expect(JSON.stringify(found)).not.toContain(PROMPT);
  expect(JSON.stringify(found)).not.toContain('no room');
});

it('says that the client left, on the request and on the attempt', async () => {
  for (const engine of engines) engine.behave({ kind: 'hang' });
  const left = new AbortController();
  const called = call('/chat/completions', { body: CALL, signal: left.signal });
  await waitFor('the engine to have the call', () => engines.some(({ received }) => received.length > 0));
  left.abort();
  await expect(called).rejects.toThrow('aborted');
  await waitFor('the line', () => lines.some(({ path }) => path === '/api/v1/chat/completions'));
  const [attempt, request, ...more] = await spans();
  expect(more).toEqual([]);
  expect(attempt).toMatchObject({ name: 'chat tiny', parentId: request?.spanId, failed: false });
  expect(request?.attributes).toMatchObject({ 'berth.client_left': true, 'berth.gateway.outcome': 'client_closed' });
  expect(request?.attributes).not.toHaveProperty('http.response.status_code');
});

it('hands the trace of a create on to its instance', async () => {
  await call('/instances', { body: { on_no_capacity: 'queue' }, headers: { traceparent: PARENT } });
  const [request, ...more] = await spans();
  expect(more).toEqual([]);
  expect(request).toMatchObject({ parentId: 'b7ad6b7169203331', name: 'POST /api/v1/instances', failed: true });
  const [, wanted] = create.mock.calls.at(-1) ?? [];
  expect(wanted?.metadata.annotations?.[TRACEPARENT]).toBe(`00-${TRACE}-${request?.spanId}-01`);
});

it('names requests by their route, and never by what is in the path', async () => {
  for (const path of ['/instances/i-1', '/instances/i-1/logs', '/instances', '/nothing/secret', '/offers?x=secret']) {
    await (await call(path)).text();
  }
  const found = await spans();
  expect(found.map(({ name }) => name)).toEqual([
    'GET /api/v1/instances/{instanceId}',
    'GET /api/v1/instances/{instanceId}/logs',
    'GET /api/v1/instances',
    'GET',
    'GET /api/v1/offers',
  ]);
  // Whether there is an instance that no cache shows, only a cluster could say.
  expect(found.map(({ attributes }) => attributes['http.response.status_code'])).toEqual([500, 500, 200, 404, 200]);
  expect(JSON.stringify(found)).not.toMatch(/secret|i-1/);
});

it('traces neither strangers nor the health of the server', async () => {
  const headers = { traceparent: PARENT };
  expect((await call('/instances', { key: 'nobody', headers })).status).toBe(401);
  expect((await fetch(`http://127.0.0.1:${api.address.port}/readyz`, { headers })).status).toBe(200);
  expect(await spans()).toEqual([]);
});

it('writes no trace of its own anywhere where nothing is traced', async () => {
  await stop();
  create.mockClear();
  await start(false);
  await (await call('/chat/completions', { body: CALL })).text();
  await call('/instances', { body: { on_no_capacity: 'queue' }, headers: { traceparent: PARENT } });
  const [received] = engines.flatMap((engine) => engine.received);
  expect(received?.headers).not.toHaveProperty('traceparent');
  const [, wanted] = create.mock.calls.at(-1) ?? [];
  expect(wanted?.metadata.annotations).not.toHaveProperty(TRACEPARENT);
  for (const line of lines) expect(line).not.toHaveProperty('trace_id');
  expect(await spans()).toEqual([]);
});
