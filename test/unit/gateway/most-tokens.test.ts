import { expect, it } from 'vitest';
import { Model } from '../../../src/gateway/balance/model.ts';
import type { Call, PlainCall } from '../../../src/gateway/calls/call.ts';
import { mostTokens } from '../../../src/gateway/calls/most-tokens.ts';
import { promptTokens } from '../../../src/gateway/dialects/index.ts';
import { fakeClock } from '../../support/fake-clock.ts';

/** A model whose server says that its context has so many tokens, or does not say. */
function modelOf(contextLength?: number): Model {
  const model = new Model('tiny', [], fakeClock());
  model.describe({ id: 'tiny', ...(contextLength !== undefined && { contextLength }) }, undefined);
  return model;
}

/** What a call of a hundred tokens by its bytes may take. */
function most(body: object, model = modelOf(), plain?: PlainCall, bytes = 400): { input: number; output: number } {
  const call = { body, bytes: Buffer.alloc(bytes), plain, promptTokens: 100, history: [], references: new Map() };
  return mostTokens(call as unknown as Call, model);
}

it.each<[string, object, number]>([
  ['its limit', { max_tokens: 50 }, 50],
  [
    'the largest of its limits, whichever an engine reads',
    { max_tokens: 1, max_completion_tokens: 70, n_predict: 9 },
    70,
  ],
  ['a limit of the responses dialect', { max_output_tokens: 60 }, 60],
  ['a bound where it has no limit', {}, 131_072],
  ['that bound where its limit is none', { max_tokens: -1 }, 131_072],
  ['that bound where one of its limits is none', { max_tokens: 200_000, n_predict: 0 }, 200_000],
  ['its limit for each answer', { max_tokens: 50, n: 3 }, 150],
  ['its limit for each answer that is made to choose from', { max_tokens: 50, n: 3, best_of: 7 }, 350],
  ['its limit for each answer, as llama.cpp calls their number', { max_tokens: 50, n_cmpl: 4 }, 200],
  ['its limit for each prompt', { max_tokens: 50, prompt: ['a', 'b', 'c'], n: 2 }, 300],
  ['its limit once for a prompt in tokens', { max_tokens: 50, prompt: [1, 2, 3] }, 50],
  ['a number that can be counted with', { max_tokens: 1e300, n: 1e300 }, 1_000_000_000],
  ['at least one answer', { max_tokens: 50, n: -4, best_of: 'many' }, 50],
])('an answer may have %s', (_what, body, output) => {
  expect(most(body).output).toBe(output);
});

it('neither prompt nor answer is longer than the context of the model', () => {
  expect(most({}, modelOf(300))).toEqual({ input: 300, output: 300 });
  expect(most({ max_tokens: 5000, n: 2 }, modelOf(300))).toEqual({ input: 300, output: 600 });
});

it.each([{}, { max_tokens: 0 }, { max_tokens: 100, n_predict: -1 }])(
  'an answer without a limit may fill a long context: %j',
  (body) => expect(most(body, modelOf(1_000_000)).output).toBe(1_000_000),
);

it('a prompt has at most a token for each byte of its text', () => {
  expect(most({ max_tokens: 1 })).toEqual({ input: 400, output: 1 });
});

it.each(['embeddings', 'rerank'] as const)('%s cost their inputs, each as long as a context', (route) => {
  expect(most({ input: ['a', 'b'] }, modelOf(300), { route })).toEqual({ input: 400, output: 0 });
});

it.each([
  ['rerank', { query: 'x'.repeat(1000), documents: Array.from({ length: 500 }, () => 'a') }],
  ['rerank', { query: 'x'.repeat(1000), documents: { content: Array.from({ length: 500 }, () => 'a') } }],
  ['score', { text_1: ['x'.repeat(1000)], text_2: Array.from({ length: 500 }, () => 'a') }],
  ['score', { items: ['x'.repeat(1000)], queries: Array.from({ length: 500 }, () => 'a') }],
] as const)('%s reads a text anew beside each that it is compared with', (route, body) => {
  const { input, output } = most(body, modelOf(4096), { route });
  expect(input).toBeGreaterThan(500_000);
  expect(input).toBeLessThan(600_000);
  expect(output).toBe(0);
});

it('pairs of a score are read once', () => {
  const texts = Array.from({ length: 5 }, () => 'x'.repeat(1000));
  expect(most({ text_1: texts, text_2: texts }, modelOf(), { route: 'score' }).input).toBeLessThan(2000);
});

it('audio has a token for each 15 bytes, or what the limits count', () => {
  const plain = { route: 'transcriptions', form: [] } as PlainCall;
  expect(most({}, modelOf(448), plain, 150_000)).toEqual({ input: 10_000, output: 448 });
  expect(most({}, modelOf(448), plain, 30).input).toBe(100);
});

const KIB = 1024;
const MIB = KIB * KIB;

interface Part {
  type: string;
  [name: string]: unknown;
}

/** A call with one part of a user's message, sent as it is. */
function mostOfPart(part: Part, model = modelOf()): number {
  const name = part.type === 'input_file' ? 'input' : 'messages';
  const body = { model: 'tiny', max_tokens: 1, [name]: [{ role: 'user', content: [part] }] };
  const bytes = Buffer.from(JSON.stringify(body));
  const estimate = { plain: undefined, promptTokens: promptTokens(body, bytes.length) };
  return mostTokens({ body, bytes, ...estimate, history: [], references: new Map() } as unknown as Call, model).input;
}

const base64 = (bytes: number): string => Buffer.alloc(bytes, 1).toString('base64');
const pdf = (bytes: number): Part => ({
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: base64(bytes) },
});
const sound = (bytes: number): Part => ({
  type: 'input_audio',
  input_audio: { data: base64(bytes), format: 'mp3' },
});

it.each<[string, Part, number, number]>([
  ['a long document: a million, more than which no model reads', pdf(20 * MIB), 1_000_000, 1_000_500],
  ['a document of 25 pages', pdf(100 * KIB), 75_000, 209_000],
  ['a letter', pdf(3 * KIB), 3000, 9000],
  [
    'the same in chat',
    { type: 'file', file: { file_data: `data:application/pdf;base64,${base64(100 * KIB)}` } },
    75_000,
    209_000,
  ],
  [
    'the same in responses',
    { type: 'input_file', file_data: `data:application/pdf;base64,${base64(100 * KIB)}` },
    75_000,
    209_000,
  ],
  ['an hour of speech at 64 kbit/s', sound(28 * MIB), 180_000, 1_000_500],
  ['ten seconds of it', sound(80_000), 500, 6000],
  ['a small image', { type: 'image_url', image_url: { url: `data:image/png;base64,${base64(300)}` } }, 4784, 6500],
  ['a large image', { type: 'image_url', image_url: { url: `data:image/png;base64,${base64(MIB)}` } }, 16_384, 17_000],
  ['an image that the server fetches', { type: 'image_url', image_url: { url: 'https://a.b/c.png' } }, 16_384, 17_000],
  [
    'a document that the server fetches',
    { type: 'document', source: { type: 'url', url: 'https://a.b/c.pdf' } },
    1_000_000,
    1_000_500,
  ],
])('%s is held against budgets by its bytes', (_what, part, least, most) => {
  const held = mostOfPart(part);
  expect(held).toBeGreaterThanOrEqual(least);
  expect(held).toBeLessThanOrEqual(most);
});

it('a document takes no more than the context of the model', () => {
  expect(mostOfPart(pdf(20 * MIB), modelOf(200_000))).toBe(200_000);
});

it('an image that was stored costs as much as one that is sent', () => {
  const url = `data:image/png;base64,${base64(MIB)}`;
  const item = { kind: 'message', role: 'user', parts: [{ type: 'image', url }] };
  const call = { body: {}, bytes: Buffer.alloc(2), plain: undefined, promptTokens: 1500, history: [item] };
  const { input } = mostTokens({ ...call, references: new Map() } as unknown as Call, modelOf());
  expect(input).toBeGreaterThanOrEqual(16_384);
});
