import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { GPU_INSTANCES, type GpuInstance, TRACEPARENT } from '../../src/resources/instances/gpu-instance.ts';
import { lookForGo } from '../../tools/lib/go/find.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { addNode, gpuNode } from '../support/http/fleet.ts';
import type { ScriptedEngine } from '../support/scripted-engine.ts';
import { runningInstance } from '../support/running-instance.ts';
import { serveModel } from '../support/serve-model.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { type Collector, startCollector } from '../support/tracing/collector.ts';
import type { SentSpan } from '../support/tracing/otlp.ts';
import { type SpanSink, startSpanSink } from '../support/tracing/span-sink.ts';
import { waitFor } from '../support/wait-for.ts';
import { ownAddress } from '../support/way.ts';

const PRODUCT = 'NVIDIA-TRACING-TEST';
const CREATE_TRACE = '11111111111111111111111111111111';
const CALL_TRACE = '22222222222222222222222222222222';
const CLIENT = '3333333333333333';
const PROMPT = 'What nobody else may read';

// Where the cluster was given, there may be no Go to build the collector with.
describe.skipIf(!(await lookForGo()).usable)('an OpenTelemetry Collector beside the roles', () => {
  let tenant: TestNamespace;
  let sink: SpanSink;
  let collector: Collector;
  let roles: BerthProcess[];
  let engine: ScriptedEngine;
  let removeNode: () => Promise<void>;
  let token: string;

  beforeAll(async () => {
    sink = await startSpanSink();
    collector = await startCollector(sink);
    tenant = await testNamespace();
    const { name: namespace, client } = tenant;
    removeNode = await addNode(client, gpuNode(`${namespace}-node`, PRODUCT, 2));
    const own = await tenant.home();
    engine = await serveModel({ client, name: own }, { engine: 'vllm', models: ['tiny'] });
    const { kubeconfig } = inject('cluster');
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
    roles = await Promise.all(['controller', 'api'].map((role) => startBerth(kubeconfig, role, own, { env })));
    ({ token } = await createKey(client, { namespace, scopes: ['compute:read', 'compute:write', 'models'] }));
    await waitFor('the model', async () => (await post('/chat/completions', CALL)).status === 200);
  }, 600_000);

  afterAll(async () => {
    await removeNode();
    for (const one of [...roles, tenant, collector, sink]) await one[Symbol.asyncDispose]();
    await engine.close();
  });

  const CALL = { model: 'tiny', messages: [{ role: 'user', content: PROMPT }] };

  async function post(path: string, body: object, trace?: string) {
    const answer = await fetch(`${roles[1]?.url}/api/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(trace !== undefined && { traceparent: `00-${trace}-${CLIENT}-01` }),
      },
      body: JSON.stringify(body),
    });
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
  }

  /** The offer of one GPU of this test. */
  function offerId(): Promise<unknown> {
    return waitFor('the offer', async () => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${roles[1]?.url}/api/v1/offers`, { headers });
      const { data } = (await answer.json()) as { data: Record<string, unknown>[] };
      return data.find((offer) => offer['gpu_name'] === PRODUCT && offer['gpu_count'] === 1)?.['id'];
    });
  }

  const running = (name: string): Promise<GpuInstance> => runningInstance(tenant, name, 60_000);

  /** Waits for the trace's spans with these names. They come by batches of two processes. */
  function spansOf(names: readonly string[], isOne: (span: SentSpan) => boolean): Promise<SentSpan[]> {
    return waitFor(`the spans ${names.join(', ')}`, () => {
      const found = sink.spans.filter(isOne);
      return names.every((name) => found.some((span) => span.name === name)) && found;
    });
  }

  const STAGES = ['claim', 'schedule', 'start container', 'become ready'];

  function expectStages(spans: readonly SentSpan[], { status }: GpuInstance): void {
    const at = (stage: 'accepted' | 'claimed' | 'scheduled' | 'started' | 'ready') =>
      Date.parse(status?.stages?.[stage] ?? '');
    const start = spans.find(({ name }) => name === 'start instance');
    expect([start?.from, start?.to]).toEqual([at('accepted'), at('ready')]);
    const parts = STAGES.map((stage) => spans.find(({ name }) => name === stage));
    expect(parts.map((part) => part?.parentId)).toEqual(STAGES.map(() => start?.spanId));
    const [claim, schedule, container, ready] = parts;
    expect(claim).toMatchObject({ from: at('accepted'), to: Math.max(at('accepted'), at('claimed')) });
    expect(schedule).toMatchObject({ from: at('claimed'), to: at('scheduled') });
    expect(container).toMatchObject({ from: at('scheduled'), to: at('started') });
    expect(ready).toMatchObject({ from: at('started'), to: at('ready') });
  }

  it('gets the creation of an instance as one trace, from the request to readiness', async () => {
    const { status, json } = await post('/instances', { ask_id: await offerId() }, CREATE_TRACE);
    expect(status).toBe(201);
    const instance = await running(String(json['id']));
    const spans = await spansOf([...STAGES, 'start instance'], ({ traceId }) => traceId === CREATE_TRACE);
    expect(spans.length).toBe(6);
    const request = spans.find(({ name }) => name === 'POST /api/v1/instances');
    expect(request).toMatchObject({ kind: 'server', parentId: CLIENT, resource: { 'service.name': 'berth-api' } });
    expect(request?.attributes).toMatchObject({ 'http.response.status_code': 201, 'berth.instance': json['id'] });
    const start = spans.find(({ name }) => name === 'start instance');
    expect(start).toMatchObject({ parentId: request?.spanId, resource: { 'service.name': 'berth-controller' } });
    expect(start?.attributes).toMatchObject({ 'berth.tenant': tenant.name, 'berth.instance': json['id'] });
    expectStages(spans, instance);
    expect(instance.metadata.annotations?.[TRACEPARENT]).toBe(`00-${CREATE_TRACE}-${request?.spanId}-01`);
  });

  it('gets a trace of its own for an instance that kubectl made', async () => {
    const metadata = { name: 'by-kubectl', namespace: tenant.name };
    const spec = { gpu: { product: PRODUCT, count: 1 } };
    await tenant.client.create(GPU_INSTANCES, { metadata, spec } as never);
    const instance = await running('by-kubectl');
    const isStart = ({ attributes }: SentSpan): boolean => attributes['berth.instance'] === 'by-kubectl';
    const [start] = await spansOf(['start instance'], isStart);
    expect(start?.parentId).toBe('');
    const spans = await spansOf(STAGES, ({ traceId }) => traceId === start?.traceId);
    expectStages(spans, instance);
  });

  it('gets a model call with its engine, and nothing of what was said', async () => {
    expect((await post('/chat/completions', CALL, CALL_TRACE)).status).toBe(200);
    const spans = await spansOf(['chat tiny'], ({ traceId }) => traceId === CALL_TRACE);
    const [attempt, request] = ['chat tiny', 'POST /api/v1/chat/completions'].map((name) =>
      spans.find((span) => span.name === name),
    );
    expect(request).toMatchObject({ parentId: CLIENT, kind: 'server', attributes: { 'berth.tenant': tenant.name } });
    expect(attempt).toMatchObject({ parentId: request?.spanId, kind: 'client' });
    expect(attempt?.attributes).toMatchObject({ 'server.address': ownAddress(), 'gen_ai.request.model': 'tiny' });
    expect(engine.received.at(-1)?.headers['traceparent']).toBe(`00-${CALL_TRACE}-${attempt?.spanId}-01`);
    const everything = JSON.stringify(sink.spans);
    for (const secret of [PROMPT, token]) expect(everything).not.toContain(secret);
  });
});
