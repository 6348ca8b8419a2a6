import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import { CALLER, eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { recordingClient } from '../../support/recording-client.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const ANNOTATIONS = {
  'berth.dev/price-input': '1.00',
  'berth.dev/price-cached-input': '0.10',
  'berth.dev/price-output': '2.00',
  'berth.dev/price-currency': 'USD',
};
const REPLY = { text: 'Hello there', inputTokens: 100, outputTokens: 7, cachedTokens: 40 };
const MESSAGES = [{ role: 'user', content: 'Hi' }];
/** 60 fresh input tokens at 1, 40 cached ones at 0.1 and 7 of output at 2 a million: millionths of a dollar. */
const COST = '0.000078';

let engine: ScriptedEngine;
let gateway: TestGateway;
let calls: ReturnType<typeof recordingClient>['calls'];

beforeEach(async () => {
  const recording = recordingClient();
  calls = recording.calls;
  engine = await startEngine({ dialects: ['chat', 'responses', 'messages'] });
  engine.behave({ kind: 'answer', reply: REPLY });
  gateway = await startGateway(undefined, { client: recording.client });
  gateway.cluster.serve({ name: 'llm', annotations: ANNOTATIONS, ports: [engine.port] });
  await gateway.ready('tiny');
});
afterEach(() => engine.close());

/** Stops the gateway, which writes what it counted, and returns the last state of each record. */
async function recorded(): Promise<TokenRecord['spec'][]> {
  await gateway.close();
  const records = calls.map(({ arguments: [, record] }) => record as TokenRecord);
  return [...new Map(records.map((one) => [one.metadata.name, one])).values()].map(({ spec }) => spec);
}

async function chat(body: object = {}, path = 'chat/completions'): Promise<string> {
  const answer = await post(gateway, path, { model: 'tiny', messages: MESSAGES, ...body });
  return answer.text();
}

it('what engines report is billed by tenant, key and model in every dialect, streamed or not', async () => {
  await chat();
  await chat({ stream: true });
  await chat({ max_tokens: 9 }, 'messages');
  await chat({ max_tokens: 9, stream: true }, 'messages');
  await chat({ input: 'Hi', messages: undefined }, 'responses');
  gateway.callAs({ ...CALLER, namespace: 'tenant-b', name: 'ann', vouchedUntil: Date.now() });
  await chat();
  const specs = (await recorded()).toSorted((a, b) => b.calls - a.calls);
  expect(specs).toMatchObject([
    {
      replica: 'replica-1',
      calls: 5,
      cost: '0.00039',
      currency: 'USD',
      day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    },
    { calls: 1, cost: COST },
  ]);
  const counts = { unreported: 0, inputPrice: '1.00', cachedInputPrice: '0.10', outputPrice: '2.00', model: 'tiny' };
  expect(specs[0]?.entries).toEqual([
    {
      ...counts,
      by: 'key/test',
      calls: 5,
      inputTokens: 500,
      cachedInputTokens: 200,
      outputTokens: 35,
      cost: '0.00039',
    },
  ]);
  expect(specs[1]?.entries).toEqual([
    { ...counts, by: 'person/ann', calls: 1, inputTokens: 100, cachedInputTokens: 40, outputTokens: 7, cost: COST },
  ]);
  const written = calls.map(({ arguments: [, record] }) => (record as TokenRecord).metadata);
  expect(new Set(written.map(({ namespace }) => namespace))).toEqual(new Set(['tenant-a', 'tenant-b']));
});

it('a call that fails, or that the model server breaks off, costs nothing', async () => {
  engine.behave(
    { kind: 'status', status: 400, body: '{"error":{"message":"no"}}' },
    { kind: 'break', reply: REPLY, events: 2 },
  );
  await chat();
  await chat({ stream: true, max_tokens: 9 }, 'messages');
  expect(await recorded()).toEqual([]);
});

it('an answer that another server gave after the first failed is billed once', async () => {
  engine.behave({ kind: 'reset' }, { kind: 'answer', reply: REPLY });
  const other = await startEngine();
  other.behave({ kind: 'answer', reply: REPLY });
  gateway.cluster.serve({ name: 'llm', annotations: ANNOTATIONS, ports: [engine.port, other.port] });
  await gateway.ready('tiny', 2);
  await Promise.all([chat(), chat(), chat()]);
  expect(await recorded()).toMatchObject([{ calls: 3, entries: [{ calls: 3, inputTokens: 300 }] }]);
  await other.close();
});

it('of a stream that the client leaves counts what the engine reported until then', async () => {
  engine.behave({ kind: 'stall', reply: REPLY, events: 3 });
  for (const path of ['messages', 'chat/completions']) {
    const leaving = new AbortController();
    const body = { model: 'tiny', messages: MESSAGES, max_tokens: 9, stream: true };
    const answer = await post(gateway, path, body, { signal: leaving.signal });
    await answer.body?.getReader().read();
    leaving.abort();
  }
  // Messages reports the input when it begins; chat nothing before the end.
  const metrics = async (): Promise<string> => gateway.registry.metrics();
  await eventually(async () => expect(await metrics()).toContain('calls_total{reason="unreported"} 1'));
  await eventually(async () =>
    expect(await metrics()).toMatch(/outcome="client_closed".* 1\n[^]*"client_closed".* 1\n/),
  );
  const [spec] = await recorded();
  expect(spec?.entries).toMatchObject([{ calls: 2, unreported: 1, inputTokens: 100, cachedInputTokens: 40 }]);
  expect(spec?.entries[0]?.outputTokens).toBeLessThan(8);
});

it('a model without a price is in no record', async () => {
  gateway.cluster.serve({ name: 'llm', annotations: {}, ports: [engine.port] });
  await eventually(async () => {
    const answer = await fetch(`${gateway.base}/v1/models/tiny`);
    expect(await answer.text()).not.toContain('price_per_million_tokens');
  });
  await chat();
  expect(await recorded()).toEqual([]);
});
