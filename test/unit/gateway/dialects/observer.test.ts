import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  PassThroughObserver,
  observeBody,
  StreamTranslator,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { heapUsed } from '../../../support/heap.ts';
import { callDelta, chunk, DONE, ROLE, sse, translate, USAGE, USAGE_CHUNK } from './engines.ts';
import { contextOf, DIALECTS } from './support.ts';

const CHAT = ROLE + chunk({ content: 'ü😀 "usage":{"prompt_tokens":1}' }) + chunk({}, 'stop') + USAGE_CHUNK + DONE;

function forward(dialect: Dialect, stream: string, options: { hideUsage: boolean; sizes?: number[] }) {
  const observer = new PassThroughObserver(dialect, options);
  const bytes = Buffer.from(stream);
  const sizes = options.sizes ?? [bytes.length];
  const out: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    const ready = observer.push(bytes.subarray(at, at + size));
    if (ready !== undefined) out.push(ready);
    at += size;
  }
  const rest = observer.end();
  if (rest !== undefined) out.push(rest);
  return { text: Buffer.concat(out).toString(), observer };
}

const NATIVE: Record<Dialect, string> = {
  chat: CHAT,
  responses: translate('chat', 'responses', CHAT),
  messages: translate('chat', 'messages', CHAT),
};

describe.each(DIALECTS)('a forwarded %s stream', (dialect) => {
  it('keeps every byte, wherever it is cut, and its usage is read', () => {
    const stream = NATIVE[dialect];
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }), (sizes) => {
        const { text, observer } = forward(dialect, stream, { hideUsage: false, sizes });
        expect(text).toBe(stream);
        expect(observer.usage).toMatchObject({ inputTokens: 100, outputTokens: 7, cachedTokens: 60 });
        expect(observer.finished).toBe(true);
        expect(observer.error).toBeUndefined();
      }),
    );
  });

  it('is not finished when it was cut off, and its events are counted', () => {
    const stream = NATIVE[dialect];
    const { observer } = forward(dialect, stream.slice(0, stream.length / 2), { hideUsage: true });
    expect(observer.finished).toBe(false);
    expect(observer.estimatedOutputTokens).toBeGreaterThan(0);
  });

  it('shows errors of the engine without addresses', () => {
    const message = 'cannot reach http://10.1.2.3:8000/x';
    const error: Record<Dialect, string> = {
      chat: sse({ error: { message, type: 'InternalServerError', code: 500 } }),
      responses: sse({ type: 'error', sequence_number: 4, code: null, message, param: null }),
      messages: sse({ type: 'error', error: { type: 'api_error', message } }),
    };
    const { text, observer } = forward(dialect, ROLE + error[dialect], { hideUsage: false });
    expect(text).toContain('cannot reach [address]');
    expect(text).not.toContain('10.1.2.3');
    expect(observer.error?.message).toBe('cannot reach [address]');
  });
});

describe('the usage chunk of a chat stream', () => {
  // Portkey-AI/gateway#496; envoyproxy/ai-gateway PR #936
  it('is left out, and nothing else, when the gateway asked for it', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }), (sizes) => {
        const { text, observer } = forward('chat', CHAT, { hideUsage: true, sizes });
        expect(text).toBe(CHAT.replace(USAGE_CHUNK, ''));
        expect(observer.usage?.outputTokens).toBe(7);
      }),
    );
  });

  it('is found with carriage returns and spaces, and kept when it carries a choice', () => {
    const spaced = `data: {"choices": [], "usage": ${JSON.stringify(USAGE)}}\r\n\r\n`;
    const both = chunk({ content: 'x' }, 'stop', { usage: USAGE });
    const { text, observer } = forward('chat', both + spaced + DONE, { hideUsage: true });
    expect(text).toBe(both + DONE);
    expect(observer.usage?.inputTokens).toBe(100);
  });
});

it.each(['e\r\n\n', 'e\r\n\r\n', 'e\n\n'])('a stream of %j is read once, byte by byte the same', (event) => {
  const stream = event.repeat(2 ** 18 / event.length);
  const before = performance.now();
  const { text, observer } = forward('messages', stream, { hideUsage: false });
  expect(performance.now() - before).toBeLessThan(2000);
  expect(text === stream).toBe(true);
  expect(observer.estimatedOutputTokens).toBe(Math.floor(2 ** 18 / event.length));
});

describe('a forwarded responses stream', () => {
  it('gives what the gateway stores', () => {
    const call = chunk(callDelta(0, { id: 'c', name: 'f', arguments: '{"a":1}' }));
    const stream = translate('chat', 'responses', ROLE + chunk({ content: 'hi' }) + call + chunk({}, 'stop') + DONE);
    const { observer } = forward('responses', stream, { hideUsage: false, sizes: [50] });
    expect(observer.responseId).toBe('resp_0a1b2c');
    expect(observer.items).toMatchObject([
      { kind: 'text', text: 'hi', id: 'msg_0a1b2c0' },
      { kind: 'call', callId: 'c', arguments: '{"a":1}' },
    ]);
  });

  it('hides addresses in the error of a failed response and keeps the rest', () => {
    const response = { id: 'r', output: [], error: { code: 'server_error', message: 'at 10.0.0.9:80', pod: 'vllm-0' } };
    const { text } = forward('responses', sse({ type: 'response.failed', response }), { hideUsage: false });
    expect(text).toContain('"error":{"code":"server_error","message":"at [address]"}');
    expect(text).toMatch(/^event: response\.failed\ndata: /);
  });
});

describe('a forwarded body', () => {
  it('gives its usage without being decoded as a whole', () => {
    const tricky = {
      choices: [{ message: { content: '"usage":{"prompt_tokens":9,"completion_tokens":9}' } }],
      usage: USAGE,
    };
    expect(observeBody('chat', Buffer.from(JSON.stringify(tricky))).usage?.inputTokens).toBe(100);
    const messages = {
      content: [],
      usage: { input_tokens: 3, output_tokens: 4, cache_read_input_tokens: 2 },
      note: { usage: {} },
    };
    expect(observeBody('messages', Buffer.from(JSON.stringify(messages))).usage).toMatchObject({
      inputTokens: 5,
      cachedTokens: 2,
    });
    expect(observeBody('chat', Buffer.from('not json')).usage).toBeUndefined();
  });

  // As Jackson writes it for people.
  it('gives its usage where there are spaces before colons', () => {
    const body = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 }, object: 'usage' };
    const text = JSON.stringify(body, undefined, 2).replaceAll('":', '" :');
    expect(observeBody('chat', Buffer.from(text)).usage).toMatchObject({ inputTokens: 3, outputTokens: 4 });
  });

  it('is searched for usage a few times at most', () => {
    const name = '"usage":{';
    const body = `{"choices":[],${name.repeat(2 ** 20 / name.length)}}`;
    const before = performance.now();
    expect(observeBody('chat', Buffer.from(body)).usage).toBeUndefined();
    expect(performance.now() - before).toBeLessThan(2000);
  });

  it('of a response gives its items and id', () => {
    const body = { id: 'r', output: [{ type: 'message', id: 'm', content: [{ type: 'output_text', text: 'x' }] }] };
    expect(observeBody('responses', Buffer.from(JSON.stringify(body)))).toMatchObject({
      responseId: 'r',
      items: [{ kind: 'text', text: 'x', id: 'm' }],
    });
  });
});

describe('the usage of a messages stream', () => {
  const start = sse({ type: 'message_start', message: { usage: { input_tokens: 3, output_tokens: 1 } } });

  it.each([
    ['passed on', () => new PassThroughObserver('messages', { hideUsage: false })],
    ['translated', () => new StreamTranslator('messages', 'chat', contextOf({}))],
  ])('keeps the counts, and nothing else that a server puts there: %s', (_how, make) => {
    const answer = make();
    answer.push(Buffer.from(start));
    const before = heapUsed();
    for (let event = 0; event < 100; event += 1) {
      const names = Array.from({ length: 1000 }, (_, index) => [`n${event}-${index}`, 'x'.repeat(100)]);
      const usage = {
        ...Object.fromEntries(names),
        output_tokens: event,
        output_tokens_details: { [event]: [[[[]]]] },
      };
      answer.push(Buffer.from(sse({ type: 'message_delta', delta: {}, usage })));
    }
    expect(heapUsed() - before).toBeLessThan(2 * 2 ** 20);
    expect(answer.usage).toMatchObject({ inputTokens: 3, outputTokens: 99 });
  });

  it('keeps the last count that is one', () => {
    const observer = new PassThroughObserver('messages', { hideUsage: false });
    for (const output of [7, -1, '9', null, 1.5])
      observer.push(Buffer.from(start + sse({ type: 'message_delta', delta: {}, usage: { output_tokens: output } })));
    observer.push(Buffer.from(sse({ type: 'message_delta', delta: {}, usage: { output_tokens: 8 } })));
    for (const output of [-1, '9', null, 1.5])
      observer.push(Buffer.from(sse({ type: 'message_delta', delta: {}, usage: { output_tokens: output } })));
    expect(observer.usage).toMatchObject({ inputTokens: 3, outputTokens: 8 });
  });
});

describe('the final event of a responses stream that is too long to be held', () => {
  const usage = { input_tokens: 100, output_tokens: 7, output_tokens_details: { reasoning_tokens: 3 } };
  const fake = { usage: { input_tokens: 1, output_tokens: 0 } };
  const long = 'x\\"{[ '.repeat(2 ** 20);
  const DELTA = sse({ type: 'response.output_text.delta', delta: 'hi' });
  const final = (response: object): string => sse({ type: 'response.completed', response, sequence_number: 9 });

  it.each([
    ['behind what is long', { id: 'r', metadata: { long }, tools: [fake], usage }],
    ['before it', { id: 'r', usage, user: long, metadata: fake }],
    ['between two such', { id: 'r', instructions: long, usage, tools: [{ parameters: fake, long }] }],
  ])('tells its usage %s, wherever it is cut', (_where, response) => {
    for (const sizes of [[65_536], [2 ** 22 + 1], [1_000_003, 7]]) {
      const stream = DELTA + final(response);
      const { text, observer } = forward('responses', stream, { hideUsage: false, sizes });
      expect(text === stream).toBe(true);
      expect(observer.finished).toBe(true);
      expect(observer.usage).toMatchObject({ inputTokens: 100, outputTokens: 7, reasoningTokens: 3 });
      expect(observer.estimatedOutputTokens).toBe(7);
    }
  });

  it('says nothing of the events behind an earlier one that was as long', () => {
    const created = sse({
      type: 'response.created',
      response: { status: 'in_progress', metadata: { long }, usage: null },
    });
    const stream = created + DELTA + final({ id: 'r', output: [], usage });
    const { text, observer } = forward('responses', stream, { hideUsage: false, sizes: [65_536] });
    expect(text === stream).toBe(true);
    expect(observer.usage).toMatchObject({ inputTokens: 100, outputTokens: 7 });
  });
});

it('what engines count of one of several answers is no count of all of them', () => {
  // vLLM, `continuous_usage_stats`: each chunk counts the answer that it is of, and the last one all of them.
  const part = (index: number, counted: number): string =>
    sse({
      choices: [{ index, delta: { content: 'x' } }],
      usage: { prompt_tokens: 100, completion_tokens: counted, total_tokens: 100 + counted },
    });
  const stream = Array.from({ length: 50 }, (_, at) => [0, 1, 2].map((index) => part(index, at + 1)).join('')).join('');
  const several = new PassThroughObserver('chat', { hideUsage: true, hasSeveral: true });
  several.push(Buffer.from(stream));
  expect(several.usage?.inputTokens).toBe(100);
  expect(several.estimatedOutputTokens).toBe(150);
  several.push(Buffer.from(sse({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 151 } })));
  expect([several.usage?.outputTokens, several.estimatedOutputTokens]).toEqual([151, 151]);
});

it('details of usage without a count leave the last ones valid', () => {
  const usages = [
    { input_tokens: 100, output_tokens: 1, input_tokens_details: { cached_tokens: 40 } },
    { completion_tokens: 7, prompt_tokens: 100, prompt_tokens_details: { cached_tokens: 40 } },
    { completion_tokens: 8, prompt_tokens: 100, prompt_tokens_details: { cached_tokens: null } },
  ];
  const stream = usages.map((usage) => sse({ type: 'message_delta', delta: {}, usage })).join('');
  const { observer } = forward('messages', stream, { hideUsage: false });
  expect(observer.usage).toMatchObject({ inputTokens: 100, outputTokens: 8, cachedTokens: 40 });
});

it.each(['passed on', 'translated'])('a count of zero takes none away that was told before: %s', (way) => {
  // Some servers of messages tell the prompt when they begin, and zeros for it in their last event.
  const start = { input_tokens: 100, cache_read_input_tokens: 60, cache_creation_input_tokens: 5, output_tokens: 0 };
  const last = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 7 };
  const stream =
    sse({ type: 'message_start', message: { usage: start } }) +
    sse({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last }) +
    sse({ type: 'message_stop' });
  const reader =
    way === 'translated' ? new StreamTranslator('messages', 'chat', contextOf({})) : observerOf('messages');
  reader.push(Buffer.from(stream));
  expect(reader.usage).toMatchObject({ inputTokens: 165, cachedTokens: 60, cacheWriteTokens: 5, outputTokens: 7 });
});

it.each(['passed on', 'translated'])('zeros at the end of a chat stream take no count away: %s', (way) => {
  const report = (usage: object) => sse({ id: 'c', choices: [], usage });
  const told = { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 } };
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const reader = way === 'translated' ? new StreamTranslator('chat', 'messages', contextOf({})) : observerOf('chat');
  reader.push(Buffer.from(chunk({ content: 'Hi' }, 'stop') + report(told) + report(zeros) + DONE));
  expect(reader.usage).toMatchObject({ inputTokens: 100, cachedTokens: 60, outputTokens: 7 });
});

it('a prompt that is found in the cache later is counted once', () => {
  const observer = observerOf('messages');
  const start = { input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 0 };
  const last = { input_tokens: 0, cache_read_input_tokens: 100, output_tokens: 7 };
  observer.push(Buffer.from(sse({ type: 'message_start', message: { usage: start } })));
  observer.push(Buffer.from(sse({ type: 'message_delta', delta: {}, usage: last })));
  expect(observer.usage).toMatchObject({ inputTokens: 100, cachedTokens: 100, outputTokens: 7 });
});

function observerOf(dialect: Dialect): PassThroughObserver {
  return new PassThroughObserver(dialect, { hideUsage: false });
}
