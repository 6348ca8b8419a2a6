/** The chat streams of the engines for one answer of reasoning, text and two calls. */
import { describe, expect, it } from 'vitest';
import { receive, sse } from './engines.ts';
import { DIALECTS } from './support.ts';

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' };
const usage = { prompt_tokens: 20, total_tokens: 29, completion_tokens: 9 };

/** One choice per chunk, with what the engine puts beside it. */
function choice(delta: object, beside: object = {}, outside: object = {}): string {
  return sse({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...beside }], ...outside });
}

const fn = (index: number, name: string | null, text: string, id: string | null) => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }],
});

const ENGINES: Record<string, string> = {
  // reasoning, ids like chatcmpl-tool-…, stop_reason and token_ids, usage in every chunk when asked for
  vLLM: [
    choice(
      { role: 'assistant', content: '' },
      {},
      { prompt_token_ids: null, usage: { ...usage, completion_tokens: 0 } },
    ),
    choice({ reasoning: 'Think.' }, { token_ids: null }, { usage: { ...usage, completion_tokens: 2 } }),
    choice({ content: 'Text.' }, { token_ids: null }, { usage: { ...usage, completion_tokens: 3 } }),
    choice({ tool_calls: [{ id: 'chatcmpl-tool-a', type: 'function', index: 0, function: { name: 'f' } }] }),
    choice({ tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] }),
    choice({ tool_calls: [{ index: 0, function: { arguments: '1}' } }] }),
    choice({ tool_calls: [{ id: 'chatcmpl-tool-b', type: 'function', index: 1, function: { name: 'g' } }] }),
    choice({ tool_calls: [{ index: 1, function: { arguments: '{}' } }] }),
    choice({ content: '' }, { finish_reason: 'tool_calls', stop_reason: null }, { usage }),
    sse({ ...head, choices: [], usage }),
    'data: [DONE]\n\n',
  ].join(''),
  // reasoning_content and nulls everywhere, usage: null in every chunk, matched_stop as a token id
  SGLang: [
    choice({ role: 'assistant', content: '', reasoning_content: null, tool_calls: null }, {}, { usage: null }),
    choice({ role: null, content: null, reasoning_content: 'Think.', tool_calls: null }, { matched_stop: null }),
    choice({ role: null, content: 'Text.', reasoning_content: null, tool_calls: null }, {}, { usage: null }),
    choice({ content: null, ...fn(0, 'f', '', 'call_a') }),
    choice({ content: null, ...fn(0, null, '{"a":', null) }),
    choice({ content: null, ...fn(0, null, '1}', null) }),
    choice({ content: null, ...fn(1, 'g', '{}', 'call_b') }),
    choice({ content: null }, { finish_reason: 'tool_calls', matched_stop: 151645 }, { usage: null }),
    sse({ ...head, choices: [], usage }),
    'data: [DONE]\n\n',
  ].join(''),
  // a role in every chunk, whole calls, content beside them, and the wrong reason to stop
  Ollama: [
    choice({ role: 'assistant', content: '', reasoning: 'Think.' }, {}, { system_fingerprint: 'fp_ollama' }),
    choice({ role: 'assistant', content: 'Text.' }),
    choice({ role: 'assistant', content: '', ...fn(0, 'f', '{"a":1}', 'call_a') }),
    choice({ role: 'assistant', content: '', ...fn(1, 'g', '{}', 'call_b') }),
    choice({ role: 'assistant', content: '' }, { finish_reason: 'stop' }),
    sse({ ...head, choices: [], usage }),
    'data: [DONE]\n\n',
  ].join(''),
  // no space after the colon, an object for a list, the same index twice, usage in the last choice, no [DONE]
  TGI: [
    choice({ role: 'assistant', content: '', reasoning_content: 'Think.' }),
    choice({ role: 'assistant', content: 'Text.' }),
    choice({
      role: 'assistant',
      tool_calls: { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":' } },
    }),
    choice({
      role: 'assistant',
      tool_calls: { index: 0, id: 'a', type: 'function', function: { name: '', arguments: '1}' } },
    }),
    choice({
      role: 'assistant',
      tool_calls: { index: 0, id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } },
    }),
    choice({ role: 'assistant', content: '' }, { finish_reason: 'stop' }, { usage }),
  ]
    .join('')
    .replaceAll('data: ', 'data:'),
};

describe.each(Object.keys(ENGINES))('a stream of %s', (engine) => {
  it.each(DIALECTS)('becomes the same answer for a %s client', (client) => {
    const got = receive('chat', client, ENGINES[engine] ?? '');
    expect(got).toMatchObject({
      reasoning: 'Think.',
      text: 'Text.',
      order: ['thinking', 'text', 'tool_use', 'tool_use'],
    });
    expect(got.calls.map(({ name, arguments: text }) => [name, text])).toEqual([
      ['f', '{"a":1}'],
      ['g', '{}'],
    ]);
    expect(got.stop).toBe({ chat: 'tool_calls', responses: 'completed', messages: 'tool_use' }[client]);
    expect(got.usage).toEqual({ input: 20, output: 9, cached: 0 });
  });
});
