import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import { accessWhile } from '../../support/access.ts';
import { CALLER, eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { recordingClient } from '../../support/recording-client.ts';
import { type EngineDialect, type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const PRICES = {
  'berth.dev/price-input': '1.00',
  'berth.dev/price-output': '2.00',
  'berth.dev/price-currency': 'USD',
};
const REPLY = { text: 'A longer answer than one token', inputTokens: 100, outputTokens: 7 };
const MESSAGES = [{ role: 'user', content: 'Hi' }];
const BODIES = {
  'chat/completions': { model: 'tiny', messages: MESSAGES },
  messages: { model: 'tiny', messages: MESSAGES, max_tokens: 50 },
  responses: { model: 'tiny', input: 'Hi' },
} as const;
/** How each dialect ends a stream with an error. */
const LAST_EVENT = {
  'chat/completions': /data: \{"error":\{[^\n]*WORDS[^\n]*\n\n(?:data: \[DONE\]\n\n)?$/,
  messages: /event: error\ndata: \{"type":"error"[^\n]*WORDS[^\n]*\n\n$/,
  responses: /event: (?:error|response\.failed)\ndata: [^\n]*WORDS[^\n]*\n\n(?:data: \[DONE\]\n\n)?$/,
} as const;
const PATHS = ['chat/completions', 'messages', 'responses'] as const;
const WHY = 'The API key is over.';
/** How many events of the engine begin an answer and do not end it. */
type Events = Record<keyof typeof BODIES, number>;
const ENGINES: [string, EngineDialect[], Events][] = [
  ['its own engine', ['chat', 'responses', 'messages'], { 'chat/completions': 3, messages: 4, responses: 6 }],
  ['an engine of chat', ['chat'], { 'chat/completions': 3, messages: 3, responses: 3 }],
];

let gateway: TestGateway;
let isRunning: boolean;
let engine: ScriptedEngine;
let lost: boolean;
let revoke: () => Promise<void>;
let calls: ReturnType<typeof recordingClient>['calls'];
/** What the gateway has asked about. */
let asked: (string | undefined)[];

async function start(dialects: EngineDialect[]): Promise<void> {
  lost = false;
  asked = [];
  const recording = recordingClient();
  calls = recording.calls;
  const { access, recheck } = accessWhile((_caller, { model }) => {
    asked.push(model);
    return lost ? WHY : undefined;
  });
  revoke = () => {
    lost = true;
    return recheck();
  };
  engine = await startEngine({ engine: 'vllm', dialects, countTokens: true });
  gateway = await startGateway(undefined, { client: recording.client, access });
  gateway.cluster.serve({ name: 'llm', annotations: PRICES, ports: [engine.port] });
  isRunning = true;
  await gateway.ready('tiny');
}
async function stop(): Promise<void> {
  if (isRunning) await gateway.close();
  isRunning = false;
  await engine.close();
}
beforeEach(() => start(['chat', 'responses', 'messages']));
afterEach(stop);

/** Stops the gateway, which writes what it counted. */
async function recorded(): Promise<TokenRecord['spec'] | undefined> {
  await stop();
  return (calls.at(-1)?.arguments[1] as TokenRecord | undefined)?.spec;
}

async function begun(path: keyof typeof BODIES, events: number): Promise<{ rest(): Promise<string> }> {
  engine.behave({ kind: 'stall', reply: REPLY, events });
  const answer = await post(gateway, path, { ...BODIES[path], stream: true });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader?.read())?.value ?? '';
  return {
    async rest() {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) text += next.value;
      return text;
    },
  };
}

function lastEvent(path: keyof typeof BODIES, words: string): RegExp {
  return new RegExp(LAST_EVENT[path].source.replaceAll('WORDS', words));
}

describe.each(ENGINES)('at %s', (_name, dialects, events) => {
  beforeEach(async () => {
    await stop();
    await start(dialects);
  });

  it.each(PATHS)(
    'a stream of %s whose caller loses access ends with one error, at the engine too, and is billed',
    async (path) => {
      const stream = await begun(path, events[path]);
      await revoke();
      const text = await stream.rest();
      expect(text).toMatch(lastEvent(path, WHY));
      expect(text.split(WHY)).toHaveLength(2);
      await eventually(() => expect(engine.received[0]?.abortedAt).toBeDefined());
      expect(await gateway.registry.metrics()).toMatch(/berth_outcome="cut".*\} 1/);
      const record = await recorded();
      expect(record?.entries).toMatchObject([{ calls: 1, unreported: 0 }]);
      expect(Number(record?.cost)).toBeGreaterThan(0);
    },
  );

  it.each(PATHS)(
    'a stream of %s that a replica has no more time for ends with one error in its shape',
    async (path) => {
      const stream = await begun(path, events[path]);
      gateway.endCalls();
      const text = await stream.rest();
      expect(text).toMatch(lastEvent(path, 'Service unavailable: this replica of the gateway stops'));
      await eventually(() => expect(engine.received[0]?.abortedAt).toBeDefined());
    },
  );
});

it.each(PATHS)('a call of %s that is not answered yet gets 401, and its engine stops', async (path) => {
  engine.behave({ kind: 'hang' });
  const answer = post(gateway, path, BODIES[path]);
  await eventually(() => expect(engine.received).toHaveLength(1));
  await revoke();
  expect((await answer).status).toBe(401);
  expect(await (await answer).text()).toContain(WHY);
  await eventually(() => expect(engine.received[0]?.abortedAt).toBeDefined());
  expect(await recorded()).toBeUndefined();
});

it('a call that is still sent gets 401, and its place in the share is free', async () => {
  const body = new TransformStream<Uint8Array, Uint8Array>();
  const writer = body.writable.getWriter();
  void writer.write(new TextEncoder().encode('{"model":"tiny",'));
  const answer = fetch(`${gateway.base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: body.readable,
    duplex: 'half',
  });
  await eventually(() => expect(asked.length).toBeGreaterThan(0));
  await revoke();
  expect((await answer).status).toBe(401);
  expect(engine.received).toHaveLength(0);
});

it('a count of tokens ends too', async () => {
  engine.freeze();
  const answer = post(gateway, 'messages/count_tokens', { model: 'tiny', messages: MESSAGES });
  await eventually(() => expect(asked).toContain('tiny'));
  await revoke();
  expect((await answer).status).toBe(401);
});

it('a call is held to the model that it names, with which it began', async () => {
  gateway.callAs({ ...CALLER, models: ['ti*'] });
  await (await post(gateway, 'chat/completions', BODIES['chat/completions'])).text();
  expect(asked).toContain('tiny');
});

it('what nobody took away goes on to its end', async () => {
  engine.behave({ kind: 'answer', reply: REPLY });
  const answer = await post(gateway, 'messages', { ...BODIES.messages, stream: true });
  expect(await answer.text()).toMatch(/event: message_stop\n/);
  await revoke();
  gateway.endCalls();
  expect((await recorded())?.entries).toMatchObject([{ calls: 1, outputTokens: 7 }]);
});
