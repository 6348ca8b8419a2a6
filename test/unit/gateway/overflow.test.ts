import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readErrorObject } from '../../../src/gateway/dialects/errors/upstream-error.ts';
import { errorBody, PassThroughObserver, readUpstreamError } from '../../../src/gateway/dialects/index.ts';
import { gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import type { Behaviour, ScriptedEngine } from '../../support/scripted-engine.ts';
import { chunk, ROLE, sse, translate } from './dialects/engines.ts';
import { readEvents } from './dialects/sse.ts';
import { NO_OVERFLOWS, OVERFLOWS, type OverflowWords } from './overflow-words.ts';

const MESSAGES = [{ role: 'user', content: 'Say hello' }];
const BODIES = {
  'chat/completions': { model: 'tiny', messages: MESSAGES },
  responses: { model: 'tiny', input: 'Say hello' },
  messages: { model: 'tiny', messages: MESSAGES, max_tokens: 50 },
} as const;
type Path = keyof typeof BODIES;
const PATHS = Object.keys(BODIES) as Path[];

interface ErrorAnswer {
  error: { type: string; code?: string; message: string };
}

describe('the words of engines for a request beyond the context', () => {
  it.each(OVERFLOWS)('$engine', ({ status, body, messages }) => {
    const told = readUpstreamError(status, JSON.stringify(body));
    for (const error of [told, readErrorObject(body)]) {
      expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded' });
      const chat = errorBody('chat', error, 'r').body as ErrorAnswer;
      expect(chat.error).toMatchObject({ type: 'invalid_request_error', code: 'context_length_exceeded' });
      const anthropic = errorBody('messages', error, 'r').body as ErrorAnswer;
      expect(anthropic.error).toEqual({ type: 'invalid_request_error', message: messages });
    }
  });

  it.each(NO_OVERFLOWS)('are not seen in other errors ($source $status)', ({ status, body }) => {
    const error = readUpstreamError(status, JSON.stringify(body));
    expect(error.status).toBe(status);
    expect(error.code).not.toBe('context_length_exceeded');
  });
});

const [FIRST] = OVERFLOWS as [OverflowWords];
const LLAMA = OVERFLOWS.find(({ engine }) => engine === 'llama.cpp in September 2025') as OverflowWords;

/** The ways in which the words arrive: with the status of an error, in a stream behind a 200, as a whole 200. */
const ARRIVALS: [string, (words: OverflowWords) => Behaviour][] = [
  ['an error status', ({ status, body }) => ({ kind: 'status', status, body: JSON.stringify(body) })],
  [
    'the first event of a stream',
    ({ body }) => ({
      kind: 'raw',
      contentType: 'text/event-stream',
      chunks: [`data: ${JSON.stringify(body.error === undefined ? { error: body } : body)}\n\n`, 'data: [DONE]\n\n'],
    }),
  ],
  ['a whole answer', ({ body }) => ({ kind: 'raw', contentType: 'application/json', chunks: [JSON.stringify(body)] })],
];

describe.each([
  ['translated', { engine: 'tgi' as const }],
  ['native', { engine: 'unknown' as const, dialects: ['chat', 'responses', 'messages'] as const }],
])('an overflow on a %s route', (_route, options) => {
  let gateway: TestGateway;
  let engines: ScriptedEngine[];
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ gateway, engines, close } = await gatewayTo(options, options));
  });
  afterAll(() => close());

  describe.each(ARRIVALS)('told by %s', (_name, arrival) => {
    it.each(PATHS)('is what clients of %s act on, and no fault of the server', async (path) => {
      for (const words of [FIRST, LLAMA]) {
        for (const stream of [false, true]) {
          const behaviour = arrival(words);
          if (behaviour.kind === 'raw' && behaviour.contentType === 'text/event-stream' && !stream) continue;
          for (const engine of engines) {
            engine.received.length = 0;
            engine.behave(behaviour);
          }
          const response = await post(gateway, path, { ...BODIES[path], stream });
          expect(engines.flatMap(({ received }) => received)).toHaveLength(1);
          if (path === 'responses' && stream) {
            expect(response.status).toBe(200);
            const events = readEvents(await response.text()).filter(({ data }) => data !== '[DONE]');
            expect(events.map(({ event }) => event)).toEqual([
              'response.created',
              'response.in_progress',
              'response.failed',
            ]);
            const failed = JSON.parse(events.at(-1)?.data ?? '') as { response: ErrorAnswer };
            expect(failed.response.error.code).toBe('context_length_exceeded');
            continue;
          }
          expect(response.status).toBe(400);
          const { error } = (await response.json()) as ErrorAnswer;
          expect(error.type).toBe('invalid_request_error');
          if (path === 'messages') expect(error.message).toBe(words.messages);
          else expect(error.code).toBe('context_length_exceeded');
        }
      }
      for (const engine of engines) engine.behave({ kind: 'answer', reply: { text: 'Hello there' } });
      expect((await post(gateway, path, BODIES[path])).status).toBe(200);
    });
  });
});

describe('an overflow in the middle of a stream', () => {
  // llama.cpp fills its cache while it generates.
  const GENERATING = OVERFLOWS.find(({ engine }) => engine.endsWith('generates')) as OverflowWords;
  const stream = ROLE + chunk({ content: 'Hello' }) + sse(GENERATING.body);
  const observe = (): string => {
    const observer = new PassThroughObserver('chat', { hideUsage: false });
    return Buffer.concat([observer.push(Buffer.from(stream)) ?? Buffer.of(), observer.end() ?? Buffer.of()]).toString();
  };

  it.each([
    ['chat', translate('chat', 'chat', stream), '"code":"context_length_exceeded"'],
    ['chat, native', observe(), '"code":"context_length_exceeded"'],
    [
      'messages',
      translate('chat', 'messages', stream),
      '"message":"prompt is too long: Context size has been exceeded."',
    ],
    ['responses', translate('chat', 'responses', stream), '"error":{"code":"context_length_exceeded"'],
  ])('is told in the words of the dialect: %s', (_name, text, words) => {
    expect(text).toContain('Hello');
    expect(text).toContain(words);
  });
});

describe('the client libraries', () => {
  it('see the error by which they compact', async () => {
    const { gateway, engines, close } = await gatewayTo({ engine: 'tgi' });
    engines[0]?.behave({ kind: 'status', status: LLAMA.status, body: JSON.stringify(LLAMA.body) });
    const openai = new OpenAI({ apiKey: 'k', baseURL: `${gateway.base}/v1`, maxRetries: 0 });
    const anthropic = new Anthropic({ apiKey: 'k', baseURL: gateway.base, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Say hello' }];
    const refused = { status: 400, code: 'context_length_exceeded' };
    await expect(openai.chat.completions.create({ model: 'tiny', messages })).rejects.toMatchObject(refused);
    await expect(openai.chat.completions.create({ model: 'tiny', messages, stream: true })).rejects.toMatchObject(
      refused,
    );
    await expect(openai.responses.create({ model: 'tiny', input: 'x' })).rejects.toMatchObject(refused);
    const events: string[] = [];
    for await (const event of await openai.responses.create({ model: 'tiny', input: 'x', stream: true })) {
      events.push(event.type);
      if (event.type === 'response.failed') events.push(String(event.response.error?.code));
    }
    expect(events.slice(-2)).toEqual(['response.failed', 'context_length_exceeded']);
    for (const stream of [false, true]) {
      const call = anthropic.messages.create({ model: 'tiny', messages, max_tokens: 5, stream });
      await expect(call).rejects.toMatchObject({
        status: 400,
        error: { error: { type: 'invalid_request_error', message: 'prompt is too long: 1407 tokens > 256 maximum' } },
      });
    }
    await close();
  });
});
