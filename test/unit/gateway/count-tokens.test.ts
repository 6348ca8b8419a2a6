import { expect, it } from 'vitest';
import { gatewayTo, post } from '../../support/model-gateway.ts';

const BODY = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] };

/** What a gateway counts to a vLLM whose tokeniser answers so. */
async function counted(answer: string): Promise<number | undefined> {
  const plain = { '/tokenize': { contentType: 'application/json', body: answer } };
  const { gateway, engines, close } = await gatewayTo({ engine: 'vllm', plain });
  const response = await post(gateway, 'messages/count_tokens', BODY);
  expect([response.status, engines[0]?.received.map(({ path }) => path)]).toEqual([200, ['/tokenize']]);
  const { input_tokens: tokens } = (await response.json()) as { input_tokens?: number };
  await close();
  return tokens;
}

it('reads the count at the start of an answer that goes on with megabytes of tokens', async () => {
  const tokens = '151643,'.repeat(500_000);
  expect(await counted(`{"count": 500001, "max_model_len": 4096, "tokens": [${tokens}1]}`)).toBe(500_001);
});

it.each([
  ['no JSON', '<html>'],
  ['a count that comes last', '{"max_model_len":4096,"tokens":[1],"count":7000}'],
  ['a count that is no number', '{"count":"7000"}'],
  ['a fraction', '{"count":7000.5}'],
  ['nothing', ''],
])('answers with an estimate where the tokeniser answers %s', async (_what, answer) => {
  expect(await counted(answer)).toBeLessThan(100);
});
