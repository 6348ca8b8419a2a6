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
  engine = await startEngine({ engine: 'unknown', dialects: ['chat', 'responses', 'messages'] });
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

it('a stream that the gateway ends because it is too long is billed as far as it came', async () => {
  const long = await startEngine({ engine: 'unknown', models: ['long'] });
  long.behave({ kind: 'flood', events: 20_000 });
  gateway.cluster.serve({ name: 'long', annotations: ANNOTATIONS, ports: [long.port] });
  await gateway.ready('long');
  const text = await chat({ model: 'long', stream: true, max_tokens: 9 }, 'messages');
  expect(text.slice(-400)).toContain('The stream is longer than 67108864 bytes.');
  const [spec] = await recorded();
  expect(spec).toMatchObject({ calls: 1, entries: [{ model: 'long' }] });
  expect(spec?.entries[0]?.outputTokens).toBeGreaterThan(1_000_000);
  await long.close();
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

/** Begins a stream and leaves after its first bytes. Resolves when the gateway knows. */
async function leave(path: string, body: object = {}): Promise<void> {
  const leaving = new AbortController();
  const full = { model: 'tiny', messages: MESSAGES, max_tokens: 9, stream: true, ...body };
  const answer = await post(gateway, path, full, { signal: leaving.signal });
  await answer.body?.getReader().read();
  leaving.abort();
  await eventually(async () => expect(await gateway.registry.metrics()).toMatch(/outcome="client_closed".* [1-9]/));
}

it.each([
  // Messages reports the input when it begins; chat and responses nothing before the end.
  ['messages', 4, {}, { inputTokens: 100, cachedInputTokens: 40 }],
  ['chat/completions', 3, {}, { inputTokens: expect.toSatisfy((count: number) => count > 10 && count < 40) as number }],
  [
    'responses',
    6,
    { input: 'Hi', messages: undefined },
    { inputTokens: expect.toSatisfy((count: number) => count > 10 && count < 40) as number },
  ],
] as const)(
  'a stream of %s that the client leaves is billed for what was passed on, as an estimate',
  async (path, events, body, input) => {
    engine.behave({ kind: 'stall', reply: REPLY, events });
    await leave(path, body);
    const [spec] = await recorded();
    expect(spec?.entries).toMatchObject([{ calls: 1, unreported: 0, estimated: 1, ...input }]);
    expect(spec?.entries[0]?.outputTokens).toBeGreaterThan(0);
    expect(spec?.entries[0]?.outputTokens).toBeLessThan(8);
    expect(Number(spec?.cost)).toBeGreaterThan(0);
  },
);

it.each([
  ['messages', { max_tokens: 9 }],
  ['responses', { input: 'Hi', messages: undefined }],
] as const)(
  'a translated stream of %s that the client leaves is billed for what the engine counted',
  async (path, body) => {
    const other = await startEngine({ engine: 'vllm', dialects: ['chat'], models: ['deep'] });
    other.behave({ kind: 'stall', reply: REPLY, events: 3 });
    gateway.cluster.serve({ name: 'deep', annotations: ANNOTATIONS, ports: [other.port] });
    await gateway.ready('deep');
    await leave(path, { ...body, model: 'deep' });
    const [spec] = await recorded();
    const counted = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 3 };
    expect(spec?.entries).toMatchObject([{ calls: 1, unreported: 0, ...counted }]);
    expect(spec?.entries[0]).not.toHaveProperty('estimated');
    await other.close();
  },
);

it('a stream that the client leaves before its first event costs nothing', async () => {
  engine.behave({ kind: 'stall', reply: REPLY, events: 0 });
  const leaving = new AbortController();
  const body = { model: 'tiny', messages: MESSAGES, stream: true };
  const answer = post(gateway, 'chat/completions', body, { signal: leaving.signal }).catch(() => undefined);
  await eventually(() => expect(engine.received.length).toBeGreaterThan(0));
  leaving.abort();
  await answer;
  await eventually(async () => expect(await gateway.registry.metrics()).toMatch(/outcome="client_closed".* 1/));
  expect(await recorded()).toEqual([]);
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
