import { afterEach, describe, expect, it } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import { readServer } from '../../../src/gateway/discovery/server-spec.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import {
  CALLER,
  eventually,
  type GatewayOptions,
  post,
  startGateway,
  type TestGateway,
} from '../../support/model-gateway.ts';
import { recordingClient } from '../../support/recording-client.ts';
import { type Behaviour, type EngineOptions, type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];
const FALLS = { 'berth.dev/model-fallbacks': 'large, last' };
const TOO_LONG = {
  message: "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.",
  type: 'BadRequestError',
  code: 400,
};
const OVERFLOW: Behaviour = { kind: 'status', status: 400, body: JSON.stringify({ error: TOO_LONG }) };

function priced(perMillion: string): Record<string, string> {
  return {
    'berth.dev/price-input': perMillion,
    'berth.dev/price-output': perMillion,
    'berth.dev/price-currency': 'USD',
  };
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Served extends EngineOptions {
  namespace?: string;
  annotations?: Record<string, string>;
}

/** A gateway with a server of one model each, by the names of the models. */
async function models<Name extends string>(
  servers: Record<Name, Served>,
  options: GatewayOptions = {},
): Promise<{ gateway: TestGateway; engines: Record<Name, ScriptedEngine> }> {
  const gateway = await startGateway(undefined, options);
  closers.push(() => gateway.close());
  const engines = {} as Record<Name, ScriptedEngine>;
  for (const [name, { namespace, annotations, ...engine }] of Object.entries<Served>(servers)) {
    const started = await startEngine({ models: [name], ...engine });
    closers.push(() => started.close());
    engines[name as Name] = started;
    gateway.cluster.serve({
      name,
      ports: [started.port],
      ...(namespace && { namespace }),
      ...(annotations && { annotations }),
    });
    await gateway.ready(name);
  }
  return { gateway, engines };
}

function ask(gateway: TestGateway, more: object = {}): Promise<Response> {
  return post(gateway, 'chat/completions', { model: 'small', messages: MESSAGES, ...more });
}

it('a call that waits until the prompt before it is read does not go elsewhere: its model is not full', async () => {
  const metrics = 'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n';
  const { gateway, engines } = await models({
    small: { annotations: FALLS, engine: 'vllm', metrics },
    large: {},
    last: {},
  });
  const read = async () => {
    const answer = await fetch(`${gateway.base}/v1/models/small`);
    return (await answer.json()) as { load?: object; queue?: { waiting: number } };
  };
  await eventually(async () => expect(await read()).toHaveProperty('load'));
  engines.small.behave({ kind: 'hang' });
  const leaving = new AbortController();
  const long = { model: 'small', stream: true, messages: [{ role: 'user', content: 'words '.repeat(5000) }] };
  const calls = [1, 2].map(() => post(gateway, 'chat/completions', long, { signal: leaving.signal }).catch(() => 0));
  await eventually(async () => expect(await read()).toMatchObject({ queue: { waiting: 1 } }));
  expect([engines.small.received.length, engines.large.received.length]).toEqual([1, 0]);
  leaving.abort();
  await Promise.all(calls);
});

describe.each([false, true])('a call that its model cannot take (stream: %s)', (stream) => {
  it.each<[string, string, Behaviour]>([
    ['overflow', 'is too long for it', OVERFLOW],
    ['full', 'is refused as too many', { kind: 'status', status: 429 }],
    ['error', 'meets an error', { kind: 'status', status: 500 }],
    ['error', 'meets a closed connection', { kind: 'reset' }],
  ])('goes to the next one (%s): it %s', async (why, _what, behaviour) => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {}, last: {} });
    engines.small.behave(behaviour);
    const answer = await ask(gateway, { stream });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-berth-route')).toContain(`fallback=large; reason=${why}`);
    expect(await answer.text()).toContain('Hello');
    expect([engines.large.received.length, engines.last.received.length]).toEqual([1, 0]);
    expect(engines.large.received[0]?.body.model).toBe('large');
    await eventually(async () =>
      expect(await gateway.registry.metrics()).toContain(
        `berth_gateway_fallbacks_total{gen_ai_request_model="small",reason="${why}"} 1`,
      ),
    );
  });
});

describe('a call that its model cannot take', () => {
  it('goes to the next one when it has no server', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {} });
    const { port } = engines.small;
    gateway.cluster.slice({ service: 'small', pod: `small-${port}`, port, conditions: { ready: false } });
    await gateway.ready('small', 0);
    const answer = await ask(gateway);
    expect([answer.status, answer.headers.get('x-berth-route')]).toEqual([
      200,
      expect.stringContaining('fallback=large; reason=unavailable'),
    ]);
  });

  it('is translated where the next one speaks another dialect', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: { dialects: ['messages'] } });
    engines.small.behave(OVERFLOW);
    const answer = await ask(gateway);
    expect(answer.headers.get('x-berth-route')).toMatch(/^translated; .*fallback=large/);
    expect(await answer.json()).toMatchObject({ model: 'large', choices: [{ message: { content: 'Hello there' } }] });
  });

  it('goes on to the one after that, and gets the answer of its own model when all fail', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {}, last: {} });
    engines.small.behave({ kind: 'status', status: 503, body: '{"error":{"message":"of small"}}' });
    engines.large.behave({ kind: 'status', status: 500 });
    expect((await ask(gateway)).headers.get('x-berth-route')).toContain('fallback=last');
    engines.last.behave({ kind: 'status', status: 500 });
    const answer = await ask(gateway);
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('of small')]);
  });

  it('gets the words for an overflow in its dialect when no other model is there', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {} });
    engines.small.behave(OVERFLOW);
    engines.large.behave({ kind: 'status', status: 500 });
    const answer = await post(gateway, 'responses', { model: 'small', input: 'Hi', stream: true });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('context_length_exceeded')]);
  });

  it('goes only for the reasons that the Service names', async () => {
    const annotations = { ...FALLS, 'berth.dev/model-fallback-on': 'overflow' };
    const { gateway, engines } = await models({ small: { annotations }, large: {} });
    engines.small.behave({ kind: 'status', status: 500 }, OVERFLOW);
    expect((await ask(gateway)).status).toBe(500);
    expect((await ask(gateway)).status).toBe(200);
  });

  it('goes only where its key may call, and the list of models says where that is', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {}, last: {} });
    engines.small.behave({ kind: 'status', status: 500 });
    gateway.callAs({ ...CALLER, models: ['small', 'last'] });
    expect((await ask(gateway)).headers.get('x-berth-route')).toContain('fallback=last');
    expect(engines.large.received).toEqual([]);
    expect(await (await fetch(`${gateway.base}/v1/models/small`)).json()).toMatchObject({
      fallbacks: { models: ['last'], on: ['unavailable', 'full', 'overflow', 'error'] },
    });
  });

  it('goes no further than the models that its own names, so never in a circle', async () => {
    const back = { 'berth.dev/model-fallbacks': 'small, large' };
    const { gateway, engines } = await models({ small: { annotations: { ...back } }, large: { annotations: back } });
    for (const engine of [engines.small, engines.large]) engine.behave({ kind: 'status', status: 500 });
    expect((await ask(gateway)).status).toBe(500);
    expect([engines.small.received.length, engines.large.received.length]).toEqual([1, 1]);
  });

  it('costs what the model costs that answered', async () => {
    const { client, calls } = recordingClient();
    const { gateway, engines } = await models(
      { small: { annotations: { ...FALLS, ...priced('1') } }, large: { annotations: priced('7') } },
      { client },
    );
    engines.small.behave(OVERFLOW);
    expect((await ask(gateway)).status).toBe(200);
    await eventually(() => expect(calls).not.toEqual([]));
    const [record] = calls.map(({ arguments: [, one] }) => one as TokenRecord);
    expect(record?.spec).toMatchObject({ entries: [{ calls: 1, model: 'large', inputPrice: '7' }] });
  });

  it('does not go where its budget does not reach', async () => {
    const budgets = () => ({
      month: '',
      renewsAt: '',
      at: '',
      percent: 0,
      lines: [
        { unit: 'USD', max: '10.00', spent: '0.00' },
        { unit: 'EUR', max: '1.00', spent: '1.00' },
      ],
    });
    const dear = { ...priced('1'), 'berth.dev/price-currency': 'EUR' };
    const { gateway, engines } = await models(
      { small: { annotations: FALLS }, large: { annotations: dear } },
      { budgets },
    );
    engines.small.behave({ kind: 'status', status: 500, body: '{"error":{"message":"of small"}}' });
    const answer = await ask(gateway);
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining('of small')]);
    expect(answer.headers.has('x-should-retry')).toBe(false);
    expect(engines.large.received).toEqual([]);
  });

  it('takes no field to servers that tenants share which only a server of its own takes', async () => {
    const { gateway, engines } = await models({
      small: { annotations: FALLS, namespace: CALLER.namespace },
      large: {},
    });
    engines.small.behave({ kind: 'status', status: 500 });
    expect((await ask(gateway, { chat_template: '{{ 1 }}' })).status).toBe(500);
    expect(engines.large.received).toEqual([]);
    expect((await ask(gateway)).status).toBe(200);
  });

  it('takes no such field out of what was stored either', async () => {
    const responses = { engine: 'unknown', dialects: ['responses'] } as const;
    const { gateway, engines } = await models({
      small: { ...responses, annotations: FALLS, namespace: CALLER.namespace },
      large: responses,
    });
    const send = (body: object) => post(gateway, 'responses', { model: 'small', ...body });
    const content = [{ type: 'image_embeds', image_embeds: 'gAJ9cQA=' }];
    const { id } = (await (await send({ input: [{ role: 'user', content }] })).json()) as { id: string };
    engines.small.behave({ kind: 'status', status: 500 });
    expect((await send({ input: 'x', previous_response_id: id })).status).toBe(500);
    expect(engines.large.received).toEqual([]);
    expect((await send({ input: 'x' })).status).toBe(200);
  });

  it('goes nowhere after its first byte', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {} });
    engines.small.behave({ kind: 'break', reply: { text: 'Hello there' }, events: 2 });
    expect(await (await ask(gateway, { stream: true })).text()).toContain('"error"');
    expect(engines.large.received).toEqual([]);
  });

  it('breaks no third server', async () => {
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {}, last: {} });
    for (const engine of Object.values(engines)) engine.behave({ kind: 'reset' });
    expect((await ask(gateway)).status).toBe(502);
    expect([engines.small, engines.large, engines.last].map(({ received }) => received.length)).toEqual([1, 1, 0]);
  });

  it('does not go where its key may call no more', async () => {
    let now: Principal | undefined = CALLER;
    const { gateway, engines } = await models({ small: { annotations: FALLS }, large: {} }, { caller: () => now });
    engines.small.behave(OVERFLOW);
    now = { ...CALLER, models: ['small'] };
    const answer = await ask(gateway);
    expect([answer.status, engines.large.received]).toEqual([400, []]);
  });
});

describe('the annotations of fallbacks', () => {
  const read = (annotations: Record<string, string>) =>
    readServer(
      { metadata: { name: 's', namespace: 'a', labels: { 'berth.dev/model-server': 'true' }, annotations } },
      { own: 'berth-system', mayScale: () => false, find: () => undefined },
    );

  it.each([
    [{ 'berth.dev/model-fallbacks': 'a,b,c,d,e' }, { models: ['a', 'b', 'c', 'd'] }],
    [{ 'berth.dev/model-fallbacks': 'a=b' }, undefined],
    [{ 'berth.dev/model-fallbacks': 'a', 'berth.dev/model-fallback-on': 'sometimes' }, undefined],
  ])('are read, and the log says what is wrong: %j', (annotations, fallback) => {
    const server = read(annotations);
    expect(server?.problems).toHaveLength(1);
    if (fallback === undefined) expect(server).not.toHaveProperty('fallback');
    else expect(server?.fallback).toMatchObject(fallback);
  });
});
