import { expect, it } from 'vitest';
import { Model } from '../../../src/gateway/balance/model.ts';
import type { Call, PlainCall } from '../../../src/gateway/calls/call.ts';
import { mostTokens } from '../../../src/gateway/calls/most-tokens.ts';
import { fakeClock } from '../../support/fake-clock.ts';

/** A model whose server says that its context has so many tokens, or does not say. */
function modelOf(contextLength?: number): Model {
  const model = new Model('tiny', [], fakeClock());
  model.describe({ id: 'tiny', ...(contextLength !== undefined && { contextLength }) }, undefined);
  return model;
}

/** What a call of a hundred tokens by its bytes may take. */
function most(body: object, model = modelOf(), plain?: PlainCall, bytes = 400): { input: number; output: number } {
  return mostTokens({ body, bytes: Buffer.alloc(bytes), plain, promptTokens: 100 } as unknown as Call, model);
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
