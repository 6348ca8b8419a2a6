import { expect, it } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';
import { CALLER, gatewayTo, post } from '../../support/model-gateway.ts';

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

it('asks a server for one tenant at most half as much as for all at once, and answers what is beyond with an estimate', async () => {
  const { gateway, engines, close } = await gatewayTo({
    engine: 'vllm',
    plain: { '/tokenize': { contentType: 'application/json', body: '{"count":7000}' } },
  });
  const [engine] = engines;
  const held = Promise.withResolvers<void>();
  engine?.behave({ kind: 'raw', contentType: 'application/json', chunks: ['{"count"', ':7000}'], gate: held.promise });
  const answers: number[] = [];
  const count = async () => {
    const response = await post(gateway, 'messages/count_tokens', BODY);
    answers.push(((await response.json()) as { input_tokens: number }).input_tokens);
  };
  const all = Array.from({ length: 40 }, count);
  await waitFor('those beyond the share to be answered', () => answers.length === 24);
  expect(Math.max(...answers)).toBeLessThan(100);
  expect(engine?.received).toHaveLength(16);
  gateway.callAs({ ...CALLER, namespace: 'neighbour', keyId: 'key-2' });
  all.push(count());
  await waitFor('the neighbour to be asked for', () => engine?.received.length === 17);
  held.resolve();
  await Promise.all(all);
  expect(answers.filter((tokens) => tokens === 7000)).toHaveLength(17);
  await close();
});
