import { expect, it } from 'vitest';
import { parseAnswer } from '../../../src/gateway/discovery/small-http.ts';

const parsed = (text: string): unknown => parseAnswer(Buffer.from(text), text);

it.each(['{},', '[],', '0,', '"",'])('an answer of more values than any that is meant is none: %s', (piece) => {
  expect(parsed(`{"data":[${piece.repeat(25_000)}0]}`)).toBeUndefined();
});

it('a list of as many models as are read is an answer, with all that vLLM says of each', () => {
  const permission = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`allow_${index}`, true]));
  const data = Array.from({ length: 512 }, (_, index) => ({
    id: `model-${index}`,
    object: 'model',
    created: 1,
    owned_by: 'vllm',
    root: '/m',
    parent: null,
    max_model_len: 4096,
    permission: [permission],
  }));
  expect(parsed(JSON.stringify({ object: 'list', data }))).toMatchObject({ data: { length: 512 } });
});

it('a long text in an answer is no many values', () => {
  const version = ',{['.repeat(200_000);
  expect(parsed(JSON.stringify({ version }))).toEqual({ version });
});
