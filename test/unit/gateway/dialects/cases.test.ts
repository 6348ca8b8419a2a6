/** Runs what the test suites of engines and clients have, kept as data with its source. */
import { describe, expect, it } from 'vitest';
import {
  errorBody,
  isOverflow,
  PassThroughObserver,
  quirksOf,
  readUpstreamError,
  StreamTranslator,
  translateRequest,
  translateResponse,
} from '../../../../src/gateway/dialects/index.ts';
import { AGENTS_REQUESTS } from './cases/agents-requests.ts';
import { ANSWERS } from './cases/answers.ts';
import { ERRORS } from './cases/errors.ts';
import { MESSAGES_REQUESTS } from './cases/messages-requests.ts';
import { RESPONSES_REQUESTS } from './cases/responses-requests.ts';
import { ENGINE_STREAMS } from './cases/engine-streams.ts';
import { MESSAGES_STREAMS } from './cases/messages-streams.ts';
import { STREAMS } from './cases/streams.ts';
import type { StreamCase } from './cases/stream-case.ts';
import { COLLECT } from './engines.ts';
import { at, contextOf, DIALECTS } from './support.ts';

const QUIRKS = quirksOf('vllm', '0.24.0', 'meta-llama/Llama-3.3-70B');

function expectAll(value: unknown, paths: Readonly<Record<string, unknown>>): void {
  for (const [path, expected] of Object.entries(paths)) {
    if (expected instanceof RegExp) expect([path, at(value, path)]).toEqual([path, expect.stringMatching(expected)]);
    else expect([path, at(value, path)]).toEqual([path, expected]);
  }
}

describe('requests', () => {
  it.each([...MESSAGES_REQUESTS, ...RESPONSES_REQUESTS, ...AGENTS_REQUESTS])(
    '$source',
    ({ from, body, sent, refused }) => {
      const translate = () => translateRequest(from, 'chat', { model: 'm', ...body }, { model: 'm', quirks: QUIRKS });
      if (refused === undefined) expectAll(translate(), sent ?? {});
      else expect(translate).toThrow(refused);
    },
  );
});

describe('whole answers', () => {
  it.each(ANSWERS)('$source', ({ message, finish, usage, read }) => {
    const body = { choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }], usage };
    const { body: answer } = translateResponse('chat', 'messages', body, contextOf({ messages: [] }));
    expectAll(answer, read);
  });
});

describe('errors', () => {
  it.each(ERRORS)('$source', ({ status, message, expected, type, overflow }) => {
    const shapes = [
      { error: { message, type: 'x', code: status } },
      { error: { message } },
      { object: 'error', message, code: status },
      { detail: message },
    ];
    for (const shape of shapes) {
      const error = readUpstreamError(status, JSON.stringify(shape));
      expect([error.status, isOverflow(error)]).toEqual([expected, overflow !== undefined]);
      const { body } = errorBody('messages', error, 'r');
      expect(at(body, 'error.type')).toBe(type);
      if (overflow !== undefined)
        expect(at(body, 'error.message')).toEqual(
          typeof overflow === 'string' ? overflow : expect.stringMatching(overflow),
        );
    }
  });
});

/** The stream for the client, when the server's arrives in pieces of this many bytes. */
function pass({ from, bytes }: StreamCase, to: (typeof DIALECTS)[number], size: number) {
  const request = { messages: [{ role: 'user', content: 'hello' }], stream_options: { include_usage: true } };
  const machine = new StreamTranslator(from, to, contextOf(request));
  const data = Buffer.from(bytes);
  let out = '';
  for (let from = 0; from < data.length; from += size) out += machine.push(data.subarray(from, from + size));
  return { out: out + machine.end(), machine };
}

const ALL_STREAMS = [...STREAMS, ...ENGINE_STREAMS, ...MESSAGES_STREAMS];
const SIZES = [1, 7, 1 << 20];

describe('streams', () => {
  it.each(ALL_STREAMS)('$source', (stream) => {
    for (const to of DIALECTS)
      for (const size of SIZES) {
        const { out, machine } = pass(stream, to, size);
        if (stream.error !== undefined) {
          expect(machine.error).toMatchObject(stream.error);
          continue;
        }
        const { text, reasoning, calls, stop } = COLLECT[to](out);
        const { text: expected = '', reasoning: thought = '', calls: called = [] } = stream;
        expect([text, reasoning]).toEqual([expected, thought]);
        expect(calls).toMatchObject(called);
        expect(calls).toHaveLength(called.length);
        if (stream.stop !== undefined) expect([to, stop]).toEqual([to, stream.stop[to]]);
      }
  });
});

/** What the gateway passes on and learns when the server speaks the client's dialect. */
function observe({ from, bytes }: StreamCase, size: number) {
  const observer = new PassThroughObserver(from, { hideUsage: false });
  const data = Buffer.from(bytes);
  const out: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += size) {
    const piece = observer.push(data.subarray(at, at + size));
    // The observer may reuse what it was given.
    if (piece !== undefined) out.push(Buffer.from(piece));
  }
  out.push(observer.end() ?? Buffer.of());
  return { text: Buffer.concat(out).toString(), observer };
}

describe('streams that are passed on', () => {
  it.each(ALL_STREAMS)('$source', (stream) => {
    for (const size of SIZES) {
      const { text, observer } = observe(stream, size);
      if (stream.error === undefined) {
        expect([observer.finished, observer.error]).toEqual([true, undefined]);
        expect(text).toBe(stream.bytes);
      } else if (observer.error === undefined) expect(observer.finished).toBe(false);
      else expect(observer.error).toMatchObject(stream.error);
    }
  });
});
