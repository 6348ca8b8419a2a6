/** Servers number the calls of each answer anew, or leave their ids empty. Anthropic refuses two calls of one id. */
import { describe, expect, it } from 'vitest';
import { quirksOf, translateRequest, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { at } from './support.ts';

const OTHER = quirksOf('unknown', undefined, 'm');
const ASK = { role: 'user', content: 'q' };

interface Block {
  type: string;
  id?: string;
  tool_use_id?: string;
  content?: string;
}

function sent(from: Dialect, body: object): { calls: unknown[]; results: [unknown, unknown][] } {
  const request = translateRequest(
    from,
    'messages',
    { model: 'm', max_tokens: 9, ...body },
    { model: 'u', quirks: OTHER },
  );
  const messages = request.messages as { content: string | Block[] }[];
  const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  return {
    calls: blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [id] : [])),
    results: blocks.flatMap(({ type, tool_use_id: id, content }): [unknown, unknown][] =>
      type === 'tool_result' ? [[id, content]] : [],
    ),
  };
}

const chatCall = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
const chatCalls = (...ids: string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map(chatCall) });
const chatResult = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });
const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
const uses = (...ids: string[]) => ({ role: 'assistant', content: ids.map(use) });
const useResults = (...given: [string, string][]) => ({
  role: 'user',
  content: given.map(([id, content]) => ({ type: 'tool_result', tool_use_id: id, content })),
});
const item = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
const output = (id: string, text: string) => ({ type: 'function_call_output', call_id: id, output: text });

describe('calls of one id', () => {
  const ways: [Dialect, string, object][] = ['0', ''].flatMap((id): [Dialect, string, object][] => [
    [
      'chat',
      id,
      {
        messages: [
          ASK,
          chatCalls(id, id),
          chatResult(id, 'A'),
          chatResult(id, 'B'),
          chatCalls(id),
          chatResult(id, 'C'),
        ],
      },
    ],
    [
      'messages',
      id,
      { messages: [ASK, uses(id, id), useResults([id, 'A'], [id, 'B']), uses(id), useResults([id, 'C'])] },
    ],
    [
      'responses',
      id,
      { input: [ASK, item(id), item(id), output(id, 'A'), output(id, 'B'), item(id), output(id, 'C')] },
    ],
  ]);

  it.each(ways)('have ids of their own at Anthropic, and each its result: %s, %j', (from, _id, body) => {
    const { calls, results } = sent(from, body);
    expect(new Set(calls).size).toBe(3);
    expect(calls).not.toContain('');
    expect(results).toEqual([
      [calls[0], 'A'],
      [calls[1], 'B'],
      [calls[2], 'C'],
    ]);
  });

  it('keep the first as it is, and take no id that the history has', () => {
    const { calls } = sent('chat', {
      messages: [ASK, chatCalls('0'), chatResult('0', 'A'), chatCalls('0_2'), chatResult('0_2', 'B'), chatCalls('0')],
    });
    expect(calls).toEqual(['0', '0_2', '0_3']);
  });

  it('have the result that came behind them where an earlier one had none', () => {
    const { calls, results } = sent('chat', {
      messages: [ASK, chatCalls('0'), ASK, chatCalls('0'), chatResult('0', 'B')],
    });
    expect(results).toEqual([[calls[1], 'B']]);
  });

  it('are none where each has its own, which may have two results', () => {
    const { calls, results } = sent('responses', {
      input: [ASK, item('a'), output('a', 'A'), item('b'), output('b', 'B'), output('b', 'C')],
    });
    expect(calls).toEqual(['a', 'b']);
    expect(results).toEqual([
      ['a', 'A'],
      ['b', 'B\n\nC'],
    ]);
  });

  it('are told apart in messages that stay messages, too', () => {
    const messages = [ASK, uses('0'), useResults(['0', 'A']), uses('0'), useResults(['0', 'B'])];
    const quirks = quirksOf('unknown', undefined, 'claude-sonnet-5');
    const body = translateRequest(
      'messages',
      'messages',
      { model: 'm', max_tokens: 9, messages },
      { model: 'u', quirks },
    );
    expect(at(body, 'messages.3.content.0.id')).toBe('0_2');
    expect(at(body, 'messages.4.content.0.tool_use_id')).toBe('0_2');
    expect(at(body, 'messages.1')).toBe(messages[1]);
    const left = [ASK, uses('0'), ASK, uses('0'), useResults(['0', 'B'])];
    const later = translateRequest(
      'messages',
      'messages',
      { model: 'm', max_tokens: 9, messages: left },
      { model: 'u', quirks },
    );
    expect(at(later, 'messages.4.content.0.tool_use_id')).toBe('0_2');
  });
});
