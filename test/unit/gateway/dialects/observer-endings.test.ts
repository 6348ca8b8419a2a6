/** Complete streams in forms that no dialect publishes, and streams that are cut. Both are passed on byte for byte. */
import { describe, expect, it } from 'vitest';
import { PassThroughObserver, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { chunk, COLLECT, DONE, ROLE, sse, translate, USAGE_CHUNK } from './engines.ts';

const CHAT = ROLE + chunk({ content: 'hi' }) + chunk({}, 'stop') + USAGE_CHUNK + DONE;
const MESSAGES = translate('chat', 'messages', CHAT);
const RESPONSES = translate('chat', 'responses', CHAT);

function forward(dialect: Dialect, stream: string, size = stream.length) {
  const observer = new PassThroughObserver(dialect, { hideUsage: false });
  const bytes = Buffer.from(stream);
  const out: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) out.push(observer.push(bytes.subarray(at, at + size)) ?? Buffer.of());
  out.push(observer.end() ?? Buffer.of());
  return { text: Buffer.concat(out).toString(), observer };
}

const COMPLETE: [string, Dialect, string, string][] = [
  // ikawrakow/ik_llama.cpp#467, waybarrios/vllm-mlx#101
  ['no [DONE]', 'chat', CHAT.replace(DONE, ''), CHAT],
  ['no [DONE], nor usage', 'chat', CHAT.replace(USAGE_CHUNK + DONE, ''), CHAT.replace(USAGE_CHUNK, '')],
  ['no blank line at the end', 'chat', CHAT.slice(0, -1), CHAT],
  ['no line end at the end', 'chat', CHAT.slice(0, -2), CHAT],
  ['event: message lines', 'chat', CHAT.replaceAll('data: ', 'event: message\ndata: '), ''],
  ['an id before each event', 'chat', CHAT.replaceAll('data: ', 'id: 7\ndata:'), ''],
  // ollama/ollama#16443: llama.cpp sends `:` as a comment from b9478 on
  ['a comment glued to each event', 'chat', CHAT.replaceAll('data: ', ': ping\ndata: '), ''],
  ['a comment between events', 'chat', CHAT.replaceAll('data: ', ':\n\ndata: ').slice(3), ''],
  ['no message_stop', 'messages', MESSAGES.replace(/event: message_stop[^]*$/, ''), MESSAGES],
  ['event: without a space', 'messages', MESSAGES.replaceAll('event: ', 'event:'), ''],
  ['event: message lines', 'messages', MESSAGES.replaceAll(/event: \w+/g, 'event: message'), ''],
  ['no event: lines', 'messages', MESSAGES.replaceAll(/event: \w+\n/g, ''), ''],
  ['a comment glued to each event', 'messages', MESSAGES.replaceAll('event: ', ': ping\nevent: '), ''],
  ['event: without a space', 'responses', RESPONSES.replaceAll('event: ', 'event:'), ''],
  ['event: message lines', 'responses', RESPONSES.replaceAll(/event: [\w.]+/g, 'event: message'), ''],
  ['a comment glued to each event', 'responses', RESPONSES.replaceAll('event: ', ': ping\nevent: '), ''],
];

describe('a complete stream is taken as one', () => {
  it.each(COMPLETE)('with %s (%s)', (_name, dialect, stream, expected) => {
    for (const sent of [stream, stream.replaceAll('\n', '\r\n')]) {
      for (const size of [sent.length, 7]) {
        const { text, observer } = forward(dialect, sent, size);
        expect(observer.finished).toBe(true);
        expect(observer.error).toBeUndefined();
        if (sent === stream) expect(text).toBe(expected === '' ? stream : expected);
      }
    }
  });
});

describe('a stream that is cut', () => {
  it.each([
    ['chat', ROLE + chunk({ content: 'hi' })],
    ['messages', MESSAGES.slice(0, MESSAGES.indexOf('event: content_block_stop'))],
    ['responses', RESPONSES.slice(0, RESPONSES.indexOf('event: response.completed'))],
  ] as [Dialect, string][])('is not complete, and half an event of it is not passed on (%s)', (dialect, whole) => {
    const { text, observer } = forward(dialect, `${whole}data: {"choices":[{"index":0,"delta":{"con`);
    expect(observer.finished).toBe(false);
    expect(text).toBe(whole);
  });

  it('is not complete where its server says no status of a response that begins', () => {
    const begins = ['created', 'in_progress'].map((step) => ({ type: `response.${step}`, response: { id: 'r' } }));
    const text = { type: 'response.output_text.delta', output_index: 0, delta: 'hi' };
    const { observer } = forward('responses', [...begins, text].map(sse).join(''));
    expect([observer.finished, observer.isOpen, observer.response]).toEqual([false, true, undefined]);
  });

  it('is not completed by a text that names the reason', () => {
    const { observer } = forward('chat', ROLE + chunk({ content: '"finish_reason":"stop"' }));
    expect(observer.finished).toBe(false);
  });
});

it.each(['chat', 'messages', 'responses'] as const)('an error inside a %s stream is its end', (dialect) => {
  const stream = { chat: CHAT, messages: MESSAGES, responses: RESPONSES }[dialect];
  const first = stream.slice(0, stream.indexOf('\n\n') + 2);
  const { text, observer } = forward(dialect, `${first}data: {"error":{"message":"boom","code":500}}\n\n`);
  expect(observer.error?.message).toBe('boom');
  expect(text.match(/boom/g)).toHaveLength(1);
  if (dialect === 'chat') expect(text.endsWith(DONE)).toBe(true);
});

it('an overflow inside a responses stream fails the response that has begun, which Codex reads', () => {
  const first = RESPONSES.slice(0, RESPONSES.indexOf('\n\n') + 2);
  const message = 'input (70000 tokens) is larger than the max context size (65536 tokens). skipping';
  const { text } = forward('responses', `${first}event: error\ndata: {"type":"error","message":"${message}"}\n\n`);
  const last = JSON.parse(/event: response\.failed\ndata: (.*)\n\n$/.exec(text)?.[1] ?? '') as object;
  expect(last).toMatchObject({
    type: 'response.failed',
    response: { id: 'resp_0a1b2c', status: 'failed', error: { code: 'context_length_exceeded', message } },
  });
});

it('strict clients read the endings that the gateway adds', () => {
  expect(COLLECT.messages(forward('messages', COMPLETE[8]?.[2] ?? '').text).text).toBe('hi');
  expect(COLLECT.chat(forward('chat', COMPLETE[0]?.[2] ?? '').text).text).toBe('hi');
});
