import { expect, it } from 'vitest';
import { post, startGateway } from '../../support/model-gateway.ts';
import { startEngine } from '../../support/scripted-engine.ts';

const CALL = {
  index: 0,
  id: 'a',
  type: 'function',
  extra_content: { google: { thought_signature: 'SIGNED' } },
  function: { name: 'f', arguments: '{}' },
};
const WHOLE = JSON.stringify({
  id: 'c',
  choices: [
    { index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: [CALL] } },
  ],
});

it('a client of messages brings the signature of a call back to a server that speaks only chat, whatever its alias', async () => {
  const gateway = await startGateway();
  const engine = await startEngine({ engine: 'unknown', dialects: ['chat'] });
  gateway.cluster.serve({ name: 'llm', annotations: { 'berth.dev/model-aliases': 'gem=tiny' }, ports: [engine.port] });
  await gateway.ready('gem');
  engine.behave({ kind: 'raw', contentType: 'application/json', chunks: [WHOLE] });
  const question = { role: 'user', content: 'q' };
  const tools = [{ name: 'f', input_schema: { type: 'object' } }];
  const first = await post(gateway, 'messages', { model: 'gem', max_tokens: 9, tools, messages: [question] });
  const { content } = (await first.json()) as { content: { type: string }[] };
  expect(content.map(({ type }) => type)).toEqual(['redacted_thinking', 'tool_use']);
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] };
  const messages = [question, { role: 'assistant', content }, result];
  await (await post(gateway, 'messages', { model: 'gem', max_tokens: 9, tools, messages })).text();
  const sent = JSON.stringify(engine.received.at(-1)?.body);
  expect(sent).toContain('"extra_content":{"google":{"thought_signature":"SIGNED"}}');
  await gateway.close();
  await engine.close();
});
