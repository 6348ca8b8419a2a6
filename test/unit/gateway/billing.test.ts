import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import { CALLER, eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { chatEvents, messagesEvents, responsesEvents } from '../../support/engine-answers.ts';
import { recordingClient } from '../../support/recording-client.ts';
import { type Behaviour, type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const ANNOTATIONS = {
  'berth.dev/price-input': '1.00',
  'berth.dev/price-cached-input': '0.10',
  'berth.dev/price-output': '2.00',
  'berth.dev/price-currency': 'USD',
};
const REPLY = { text: 'Hello there', inputTokens: 100, outputTokens: 7, cachedTokens: 40 };
const MESSAGES = [{ role: 'user', content: 'Hi' }];
/** 60 fresh input tokens at 1, 40 cached ones at 0.1 and 7 of output at 2 a million: millionths of a dollar. */
const CREATED = 'event: response.created\ndata: {"type":"response.created","response":{"status":"in_progress"}}\n\n';
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

it('a call is billed on the day that the clock of bills says, whatever this replica takes for today', async () => {
  await gateway.close();
  const recording = recordingClient();
  calls = recording.calls;
  gateway = await startGateway(undefined, {
    client: recording.client,
    billingClock: { now: () => Date.UTC(2025, 4, 31, 23, 59) },
  });
  gateway.cluster.serve({ name: 'llm', annotations: ANNOTATIONS, ports: [engine.port] });
  await gateway.ready('tiny');
  await chat();
  expect((await recorded()).map(({ day }) => day)).toEqual(['2025-05-31']);
});

it('a call that fails, or that the model server breaks off, costs nothing', async () => {
  engine.behave(
    { kind: 'status', status: 400, body: '{"error":{"message":"no"}}' },
    { kind: 'break', reply: REPLY, events: 2 },
  );
  await chat();
  for (const stream of [true, false])
    for (const [path, body] of Object.values(CALLS)) await chat({ messages: undefined, ...body, stream }, path);
  expect(await recorded()).toEqual([]);
});

it('an answer that its engine gives up costs nothing, and is told as none', async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 7 };
  const choice = { index: 0, finish_reason: 'abort' };
  const begun = JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'half' }, finish_reason: null }] });
  const cut = JSON.stringify({ id: 'c', choices: [{ ...choice, delta: {} }], usage });
  const whole = JSON.stringify({ id: 'c', choices: [{ ...choice, message: { content: 'half' } }], usage });
  engine.behave(
    { kind: 'raw', contentType: 'text/event-stream', chunks: [`data: ${begun}\n\ndata: ${cut}\n\ndata: [DONE]\n\n`] },
    { kind: 'raw', contentType: 'application/json', chunks: [whole] },
  );
  for (const stream of [true, false]) expect(await chat({ stream })).toContain('gave up the answer');
  expect(await recorded()).toEqual([]);
});

it.each([{ code: 'server_error', message: 'out of luck' }, null])(
  'a response that failed costs nothing, as a stream and whole: %j',
  async (error) => {
    const usage = { input_tokens: 100, output_tokens: 7 };
    const response = { id: 'resp_1', object: 'response', status: 'failed', error, output: [], usage };
    const event = JSON.stringify({ type: 'response.failed', response });
    engine.behave(
      {
        kind: 'raw',
        contentType: 'text/event-stream',
        chunks: [CREATED, `event: response.failed\ndata: ${event}\n\n`],
      },
      { kind: 'raw', contentType: 'application/json', chunks: [JSON.stringify(response)] },
    );
    for (const stream of [true, false]) {
      const text = await chat({ input: 'Hi', messages: undefined, stream }, 'responses');
      expect(text).toContain(error?.message ?? 'gave up the answer');
    }
    expect((await fetch(`${gateway.base}/v1/responses/resp_1`)).status).toBe(404);
    expect(await recorded()).toEqual([]);
  },
);

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

it.each([
  ['that tells its usage', false, 'chat/completions', 70_000],
  ['in another dialect', false, 'messages', 70_000],
  ['for which a stream was asked', true, 'messages', 70_000],
  ['that tells nothing', false, 'chat/completions', undefined],
] as const)(
  'a whole answer that is too long is refused, billed, and asked of no other server: %s',
  async (_what, stream, path, told) => {
    const servers = [1, 2].map(() => startEngine({ engine: 'unknown', models: ['long'] }));
    const long = await Promise.all(servers);
    const head = '{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"content":"';
    const usage = told === undefined ? '' : `,"usage":{"prompt_tokens":100,"completion_tokens":${told}}`;
    const chunks = [head, ...Array.from({ length: 33 }, () => 'x'.repeat(2 ** 20)), `"}}]${usage}}`];
    for (const server of long) server.behave({ kind: 'raw', contentType: 'application/json', chunks });
    gateway.cluster.serve({ name: 'long', annotations: ANNOTATIONS, ports: long.map(({ port }) => port) });
    await gateway.ready('long', 2);
    expect(await chat({ model: 'long', stream, max_tokens: 9 }, path)).toContain('longer than 33554432 bytes');
    expect(long.flatMap(({ received }) => received)).toHaveLength(1);
    const [spec] = await recorded();
    const [entry] = spec?.entries ?? [];
    // The least: a token for 32 KiB.
    expect([entry?.calls, entry?.outputTokens]).toEqual([1, told ?? 33 * 32]);
    if (told !== undefined) expect(entry?.inputTokens).toBe(100);
    expect(entry?.inputTokens).toBeGreaterThan(0);
    await Promise.all(long.map((server) => server.close()));
  },
);

const WORDS = ['Once', ' upon', ' a', ' time', '.'];
/** The first server dies behind three words. */
async function goingOn(second: Behaviour, dialect: 'chat' | 'messages'): Promise<Response> {
  const script: Behaviour[] = [{ kind: 'write', tokens: WORDS, dies: 3 }, second];
  const next = (): Behaviour => script.shift() ?? { kind: 'hang' };
  const options = { engine: 'sglang', models: ['two'], script: next } as const;
  const two = await Promise.all([startEngine(options), startEngine(options)]);
  gateway.cluster.serve({ name: 'two', annotations: ANNOTATIONS, ports: two.map(({ port }) => port) });
  await gateway.ready('two', 2);
  const body = { model: 'two', messages: MESSAGES, stream: true, max_tokens: 9 };
  return post(gateway, dialect === 'chat' ? 'chat/completions' : 'messages', body);
}

it.each(['chat', 'messages'] as const)(
  'a stream that another server went on with is billed once, as a whole: %s',
  async (dialect) => {
    await (await goingOn({ kind: 'write', tokens: WORDS }, dialect)).text();
    const [spec] = await recorded();
    expect(spec).toMatchObject({ calls: 1, entries: [{ calls: 1, inputTokens: 10, outputTokens: WORDS.length }] });
  },
);

it('a stream that its client leaves at the other server is billed once, as far as it came', async () => {
  const head = chatEvents('two', { tokens: WORDS.slice(3) }, false).slice(0, 2);
  const second: Behaviour = {
    kind: 'raw',
    contentType: 'text/event-stream',
    chunks: [head.join(''), ''],
    gate: new Promise(() => undefined),
  };
  const answer = await goingOn(second, 'messages');
  const reader = answer.body?.getReader();
  let text = '';
  while (!text.includes(' time')) text += Buffer.from((await reader?.read())?.value ?? []).toString();
  await reader?.cancel();
  await eventually(async () => expect(await gateway.registry.metrics()).toMatch(/client_closed/));
  const [spec] = await recorded();
  expect(spec).toMatchObject({ calls: 1, entries: [{ calls: 1, inputTokens: 10, outputTokens: 4 }] });
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

/** Begins a stream and leaves after its first bytes, or behind a text. Resolves when the gateway knows. */
async function leave(path: string, body: object = {}, behind = ''): Promise<void> {
  const leaving = new AbortController();
  const full = { model: 'tiny', messages: MESSAGES, max_tokens: 9, stream: true, ...body };
  const answer = await post(gateway, path, full, { signal: leaving.signal });
  const reader = answer.body?.getReader();
  let text = '';
  do text += Buffer.from((await reader?.read())?.value ?? []).toString();
  while (!text.includes(behind));
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
    other.behave({ kind: 'stall', reply: { ...REPLY, tokens: ['Hello', ' there', ' you', '.'] }, events: 4 });
    gateway.cluster.serve({ name: 'deep', annotations: ANNOTATIONS, ports: [other.port] });
    await gateway.ready('deep');
    await leave(path, { ...body, model: 'deep' }, ' you');
    const [spec] = await recorded();
    const counted = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 3 };
    expect(spec?.entries).toMatchObject([{ calls: 1, unreported: 0, ...counted }]);
    expect(spec?.entries[0]).not.toHaveProperty('estimated');
    await other.close();
  },
);

const DIALECTS = ['chat', 'responses', 'messages'] as const;
/** Four characters each: what is estimated by texts and by events is about the same. */
const LONG = Array.from({ length: 40 }, (_, index) => ` w${String(index).padStart(2, '0')}`);
/** The most events that a stream has beside those of its text. */
const OTHERS = 8;
const LONG_REPLY = { text: LONG.join(''), tokens: LONG, inputTokens: 100, outputTokens: LONG.length };
const COUNTED_EARLY = '"usage":{"prompt_tokens":100,"completion_tokens":2}';
/** A stream up to the last of its text. What it counts when it begins is no count of its answer. */
const BEGUN = {
  chat: chatEvents('m', LONG_REPLY, false)
    .slice(0, LONG.length + 1)
    .with(0, `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant"}}],${COUNTED_EARLY}}\n\n`),
  responses: responsesEvents('m', LONG_REPLY).slice(0, LONG.length + 4),
  messages: messagesEvents('m', LONG_REPLY)
    .slice(0, LONG.length + 2)
    .map((event) => event.replace('"output_tokens":0', '"output_tokens":2')),
};
const CALLS = {
  chat: ['chat/completions', { messages: MESSAGES }],
  responses: ['responses', { input: 'Hi' }],
  messages: ['messages', { messages: MESSAGES, max_tokens: 99 }],
} as const;

/** Begins a stream in each dialect, of a server of each. Reads all that there is, and then lets `end` end it. */
async function endEach(end: (leave: () => Promise<void> | undefined) => unknown): Promise<void> {
  for (const from of DIALECTS) {
    const models = DIALECTS.map((to) => `${from}-to-${to}`);
    const server = await startEngine({ engine: 'unknown', dialects: [from], models });
    server.behave({
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [BEGUN[from].join(''), ''],
      gate: new Promise(() => undefined),
    });
    gateway.cluster.serve({ name: from, annotations: ANNOTATIONS, ports: [server.port] });
    for (const to of DIALECTS) {
      await gateway.ready(`${from}-to-${to}`);
      const [path, body] = CALLS[to];
      const answer = await post(gateway, path, { model: `${from}-to-${to}`, stream: true, ...body });
      const reader = answer.body?.getReader();
      let text = '';
      while (!text.includes('w39')) text += Buffer.from((await reader?.read())?.value ?? []).toString();
      await end(() => reader?.cancel());
    }
    await server.close();
  }
}

function overAs(outcome: string): Promise<void> {
  const all = DIALECTS.length ** 2;
  return eventually(async () => {
    const metrics = await gateway.registry.metrics();
    const counts = [...metrics.matchAll(new RegExp(`berth_outcome="${outcome}"[^}]*\\} (\\d+)`, 'g'))];
    expect(counts.reduce((sum, [, count]) => sum + Number(count), 0)).toBeGreaterThanOrEqual(all);
  });
}

it.each(['client_closed', 'cut'] as const)(
  'a stream of any dialect that ends early (%s) is billed for what was produced, not for what was counted when it began',
  async (outcome) => {
    await endEach((leave) => (outcome === 'client_closed' ? leave() : gateway.endCalls()));
    await overAs(outcome);
    const entries = (await recorded()).flatMap((spec) => spec.entries);
    expect(entries).toHaveLength(DIALECTS.length ** 2);
    for (const { model, estimated, inputTokens, outputTokens } of entries) {
      expect([model, estimated]).toEqual([model, 1]);
      expect(inputTokens).toBeGreaterThan(0);
      expect([model, outputTokens >= LONG.length, outputTokens <= LONG.length + OTHERS]).toEqual([model, true, true]);
    }
  },
);

/** How a stream ends whose output was counted when it began, if at all. */
const UNCOUNTED_END = {
  chat: 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  responses:
    'event: response.completed\ndata: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":2,"output_tokens":0}}}\n\n',
  messages:
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
};

/** The output tokens that the last usage of an answer tells. */
function toldIn(text: string): number {
  return Number([...text.matchAll(/"(?:output|completion)_tokens":(\d+)/g)].at(-1)?.[1] ?? 0);
}

/** Bills of whole answers of a server of each dialect to clients of each. Where they are translated, they tell as much. */
async function billEach(behaviours: Record<(typeof DIALECTS)[number], Behaviour>, stream: boolean) {
  for (const from of DIALECTS) {
    const models = DIALECTS.map((to) => `${from}-to-${to}`);
    const server = await startEngine({ engine: 'unknown', dialects: [from], models });
    server.behave(behaviours[from]);
    gateway.cluster.serve({ name: from, annotations: ANNOTATIONS, ports: [server.port] });
    for (const to of DIALECTS) {
      await gateway.ready(`${from}-to-${to}`);
      const [path, body] = CALLS[to];
      const usage = stream && to === 'chat' && { stream_options: { include_usage: true } };
      const answer = await post(gateway, path, { model: `${from}-to-${to}`, stream, ...usage, ...body });
      const told = toldIn(await answer.text());
      if (from !== to)
        expect([from, to, told >= LONG.length, told <= LONG.length + OTHERS]).toEqual([from, to, true, true]);
    }
    await server.close();
  }
  return (await recorded()).flatMap((spec) => spec.entries);
}

function streamOf(text: string): Behaviour {
  return { kind: 'raw', contentType: 'text/event-stream', chunks: [text] };
}

function expectProduced(entries: readonly TokenRecord['spec']['entries'][number][]): void {
  expect(entries).toHaveLength(DIALECTS.length ** 2);
  for (const { model, estimated, inputTokens, outputTokens } of entries) {
    expect([model, estimated, inputTokens > 0]).toEqual([model, 1, true]);
    expect([model, outputTokens >= LONG.length, outputTokens <= LONG.length + OTHERS]).toEqual([model, true, true]);
  }
}

it('a stream whose server counts its output only when it begins is billed for what was produced', async () => {
  const ended = (from: keyof typeof BEGUN): Behaviour => streamOf(BEGUN[from].join('') + UNCOUNTED_END[from]);
  expectProduced(
    await billEach({ chat: ended('chat'), responses: ended('responses'), messages: ended('messages') }, true),
  );
});

it('a stream that ends with a count of zero is billed for what was produced', async () => {
  const zeros = UNCOUNTED_END.messages.replace('"end_turn"}', '"end_turn"},"usage":{"output_tokens":0}');
  const chat = UNCOUNTED_END.chat.replace(
    'data: [DONE]',
    'data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}\n\ndata: [DONE]',
  );
  expectProduced(
    await billEach(
      {
        chat: streamOf(BEGUN.chat.join('') + chat),
        responses: streamOf(BEGUN.responses.join('') + UNCOUNTED_END.responses),
        messages: streamOf(BEGUN.messages.join('') + zeros),
      },
      true,
    ),
  );
});

it('an answer in one piece is billed for what was produced when its server counts only the prompt', async () => {
  const text = LONG.join('');
  const whole = (body: object): Behaviour => ({
    kind: 'raw',
    contentType: 'application/json',
    chunks: [JSON.stringify(body)],
  });
  const content = [{ type: 'text', text }];
  const message = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] };
  expectProduced(
    await billEach(
      {
        chat: whole({
          id: 'c',
          choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 9 },
        }),
        responses: whole({ id: 'r', status: 'completed', output: [message], usage: { input_tokens: 9 } }),
        messages: whole({ id: 'm', type: 'message', content, stop_reason: 'end_turn', usage: { input_tokens: 9 } }),
      },
      false,
    ),
  );
});

it.each(['"content":', '"content": '])(
  'tokens that come many to an event are estimated by their text: %j',
  async (member) => {
    const [head = '', ...others] = BEGUN.chat;
    const event = (content: string): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
    const half = LONG.length / 2;
    const texts = [LONG.slice(0, half).join(''), LONG.slice(half).join('')].map(event);
    expect(others).toHaveLength(LONG.length);
    engine.behave({
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [head + texts.join('').replaceAll('"content":', member), ''],
      gate: new Promise(() => undefined),
    });
    await leave('chat/completions', {}, 'w39');
    const [spec] = await recorded();
    expect(spec?.entries).toMatchObject([{ estimated: 1, outputTokens: 2 + LONG.length }]);
  },
);

it('a count that comes with the last text is no estimate', async () => {
  const counted = (content: string, count: number): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], usage: { prompt_tokens: 9, completion_tokens: count } })}\n\n`;
  const stream = counted('a', 1) + counted('b', 2) + counted('c', 2) + UNCOUNTED_END.chat;
  for (const path of ['chat/completions', 'messages']) {
    engine.behave(streamOf(stream));
    await chat({ stream: true, max_tokens: 9 }, path);
  }
  const [spec] = await recorded();
  expect(spec?.entries[0]).toMatchObject({ calls: 2, unreported: 0, outputTokens: 4 });
  expect(spec?.entries[0]).not.toHaveProperty('estimated');
});

it('a whole answer that the client does not wait for costs nothing, in any dialect', async () => {
  engine.behave({ kind: 'hang' });
  for (const [path, body] of Object.values(CALLS)) {
    const leaving = new AbortController();
    const before = engine.received.length;
    const call = post(gateway, path, { model: 'tiny', ...body }, { signal: leaving.signal }).catch(() => undefined);
    await eventually(() => expect(engine.received.length).toBeGreaterThan(before));
    leaving.abort();
    await call;
  }
  expect(await recorded()).toEqual([]);
});

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
