import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PassThroughObserver, observeBody, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, ROLE, sse, translate, USAGE, USAGE_CHUNK } from './engines.ts';
import { DIALECTS } from './support.ts';

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
    const response = { id: 'r', output: [], error: { code: 'server_error', message: 'at 10.0.0.9:80' } };
    const { text } = forward('responses', sse({ type: 'response.failed', response }), { hideUsage: false });
    expect(text).toContain('"message":"at [address]"');
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
