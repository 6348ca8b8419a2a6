import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quirksOf, translateRequest, translateResponse } from '../../../../src/gateway/dialects/index.ts';
import { USAGE } from './engines.ts';
import { at, contextOf } from './support.ts';

const ENGINE = quirksOf('vllm', '0.20.0', 'meta-llama/Llama-3.3-70B');

/** Text that says something: blank text is left out on purpose beside calls. */
const words = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }).map((text) => `w${text}`);

const values = fc.oneof(
  fc
    .dictionary(fc.string({ minLength: 1, maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
    .map((value) => JSON.stringify(value)),
  fc.constantFrom('{"broken": ', '[1,2]', '"text"'),
);

const calls = fc.array(fc.record({ name: fc.constantFrom('f', 'g'), value: values }), { maxLength: 3 });

const turn = fc.record({ user: words, reasoning: fc.option(words), text: fc.option(words), calls, result: words });

type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

function toolCalls(turn: Turn, position: number): object[] {
  return turn.calls.map(({ name, value }, call) => ({
    id: `call_${position}_${call}`,
    type: 'function',
    function: { name, arguments: value },
  }));
}

function assistantOf(turn: Turn, position: number): Record<string, unknown> {
  const called = toolCalls(turn, position);
  const content = turn.text ?? (called.length > 0 ? null : 'nothing to say');
  const reasoning = turn.reasoning === null ? {} : { reasoning: turn.reasoning, reasoning_content: turn.reasoning };
  return { role: 'assistant', content, ...reasoning, ...(called.length > 0 && { tool_calls: called }) };
}

function conversation(turns: readonly Turn[]): object[] {
  return turns.flatMap((turn, position) => [
    { role: 'user', content: turn.user },
    assistantOf(turn, position),
    ...turn.calls.map((_call, call) => ({
      role: 'tool',
      tool_call_id: `call_${position}_${call}`,
      content: `${turn.result}${call}`,
    })),
  ]);
}

const LAST = { role: 'user', content: 'and now?' };

describe.each(['responses', 'messages'] as const)('there and back through %s', (middle) => {
  it('a conversation keeps its text, reasoning, calls, results and order', () => {
    fc.assert(
      fc.property(words, fc.array(turn, { minLength: 1, maxLength: 4 }), (system, turns) => {
        const messages = [{ role: 'system', content: system }, ...conversation(turns), LAST];
        const options = { model: 'm', quirks: ENGINE };
        const there = translateRequest('chat', middle, { model: 'm', messages, max_tokens: 9 }, options);
        const back = translateRequest(middle, 'chat', there, options);
        expect(back).toEqual({ model: 'm', messages, max_tokens: 9 });
      }),
    );
  });

  it('an answer keeps its text, reasoning, calls, order, stop reason and usage', () => {
    fc.assert(
      fc.property(turn, (turn) => {
        const { reasoning: _reasoning, ...message } = assistantOf(turn, 0);
        const finish = turn.calls.length > 0 ? 'tool_calls' : 'stop';
        const body = { choices: [{ message: { ...message, refusal: null }, finish_reason: finish }], usage: USAGE };
        const there = translateResponse('chat', middle, body, contextOf()).body;
        const back = translateResponse(middle, 'chat', there, contextOf());
        expect(at(back.body, 'choices.0')).toMatchObject({
          message: { ...message, refusal: null },
          finish_reason: finish,
        });
        expect(back.usage).toMatchObject({ inputTokens: 100, outputTokens: 7, cachedTokens: 60 });
      }),
    );
  });
});
