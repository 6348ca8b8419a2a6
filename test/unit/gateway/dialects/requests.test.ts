import { describe, expect, it } from 'vitest';
import {
  DialectError,
  parseInput,
  quirksOf,
  translateRequest,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { at, MISTRAL, OLLAMA, VLLM, WEATHER } from './support.ts';

const options = { model: 'upstream', quirks: VLLM };
const user = (content: unknown) => ({ role: 'user', content });
const fromMessages = (body: object, quirks = VLLM) =>
  translateRequest('messages', 'chat', { model: 'm', max_tokens: 10, ...body }, { ...options, quirks });
const fromResponses = (body: object, extra: object = {}) =>
  translateRequest('responses', 'chat', { model: 'm', ...body }, { ...options, ...extra });
const strictOf = (body: unknown) => at(body, 'tools.0.function.strict');
const withFunction = (parameters: object, strict?: boolean) =>
  fromResponses({ input: 'x', tools: [{ type: 'function', name: 'f', parameters, strict }] });
const flatTool = (name: string) => ({ type: 'function', name, parameters: WEATHER });
const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: { z: 1, a: 2 } });
const imagePart = (url: string) => ({ type: 'image_url', image_url: { url } });
const replayed = (reasoning: object) => {
  const input = [user('x'), { type: 'reasoning', summary: [], ...reasoning }, { role: 'assistant', content: 'y' }];
  return at(fromResponses({ input }), 'messages.1');
};

describe('system text', () => {
  it('joins the blocks of a messages body into one leading system message, without the billing line', () => {
    const body = fromMessages({
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=9f3a1;' },
        { type: 'text', text: 'You are helpful.', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'Be brief.' },
      ],
      messages: [user('hi')],
    });
    expect(body.messages).toEqual([
      { role: 'system', content: 'You are helpful.\n\nBe brief.' },
      { role: 'user', content: 'hi' },
    ]);
  });

  it('puts instructions before stored history and merges them with leading developer messages', () => {
    const body = fromResponses(
      { instructions: 'A', input: [{ role: 'developer', content: 'B' }, user('now')] },
      { history: [] },
    );
    expect(at(body, 'messages.0')).toEqual({ role: 'system', content: 'A\n\nB' });
  });

  it('keeps a mid-thread system text where it is and never between a call and its result', () => {
    const body = fromMessages({
      messages: [
        user('go'),
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] },
        { role: 'system', content: 'stay calm' },
        user([{ type: 'tool_result', tool_use_id: 't1', content: 'done' }]),
      ],
    });
    expect(at(body, 'messages.length')).toBe(3);
    expect(at(body, 'messages.2')).toEqual({
      role: 'tool',
      tool_call_id: 't1',
      content: 'done\n\n<system>\nstay calm\n</system>',
    });
  });
});

describe('tools', () => {
  it('spells strict out: off by default from messages and chat, on from responses where the schema allows it', () => {
    expect(strictOf(fromMessages({ messages: [user('x')], tools: [{ name: 'f', input_schema: WEATHER }] }))).toBe(
      false,
    );
    expect(strictOf(withFunction(WEATHER))).toBe(true);
    expect(strictOf(withFunction({ type: 'object', properties: { a: {} } }))).toBe(false);
    expect(strictOf(withFunction(WEATHER, false))).toBe(false);
    const chat = { model: 'm', messages: [user('x')], tools: [{ type: 'function', function: { name: 'f' } }] };
    expect(at(translateRequest('chat', 'responses', chat, options), 'tools.0.strict')).toBe(false);
  });

  it.each([
    [{ type: 'auto' }, 'auto', undefined],
    [{ type: 'any' }, 'required', undefined],
    [{ type: 'none' }, 'none', undefined],
    [{ type: 'tool', name: 'f' }, { type: 'function', function: { name: 'f' } }, undefined],
    [{ type: 'any', disable_parallel_tool_use: true }, 'required', false],
  ])('maps the messages tool_choice %j', (tool_choice, expected, parallel) => {
    const body = fromMessages({ messages: [user('x')], tools: [{ name: 'f', input_schema: WEATHER }], tool_choice });
    expect(body.tool_choice).toEqual(expected);
    expect(body.parallel_tool_calls).toBe(parallel);
  });

  it('offers only the allowed tools', () => {
    const body = fromResponses({
      input: 'x',
      tools: [flatTool('a'), flatTool('b')],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'b' }] },
    });
    expect(body.tool_choice).toBe('required');
    expect(body.tools).toMatchObject([{ function: { name: 'b' } }]);
  });

  it('turns parallel_tool_calls: false into disable_parallel_tool_use for a messages backend', () => {
    const body = {
      model: 'm',
      messages: [user('x')],
      tools: [{ type: 'function', function: { name: 'f', parameters: WEATHER } }],
      parallel_tool_calls: false,
    };
    const sent = translateRequest('chat', 'messages', body, options);
    expect(sent.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true });
  });

  it('emulates free-form and namespaced tools with functions', () => {
    const body = fromResponses({
      input: [user('x'), { type: 'custom_tool_call', call_id: 'c', name: 'patch', input: '*** Begin' }],
      tools: [
        { type: 'custom', name: 'patch', description: 'Apply.' },
        {
          type: 'namespace',
          name: 'ns',
          description: '',
          tools: [{ type: 'function', name: 'f', parameters: WEATHER }],
        },
      ],
    });
    expect(body.tools).toMatchObject([{ function: { name: 'patch' } }, { function: { name: 'ns__f' } }]);
    expect(at(body, 'messages.1.tool_calls.0.function.arguments')).toBe('{"input":"*** Begin"}');
  });

  it.each([
    ['responses', { input: 'x', tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
    [
      'messages',
      { max_tokens: 1, messages: [user('x')], tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    ],
  ] as const)('refuses hosted tools of %s clearly: %j', (dialect, body) => {
    expect(() => translateRequest(dialect, 'chat', { model: 'm', ...body }, options)).toThrow(/not available here/);
  });

  it('refuses to pretend that an engine obeys tool_choice', () => {
    const body = { messages: [user('x')], tools: [{ name: 'f', input_schema: WEATHER }] };
    expect(() => fromMessages({ ...body, tool_choice: { type: 'any' } }, OLLAMA)).toThrow(DialectError);
    expect(fromMessages({ ...body, tool_choice: { type: 'none' } }, OLLAMA).tools).toBeUndefined();
    const chat = { model: 'm', messages: [user('x')], tools: [{}], tool_choice: 'required' };
    expect(() => translateRequest('chat', 'chat', chat, { ...options, quirks: OLLAMA })).toThrow(DialectError);
  });
});

describe('tool results', () => {
  it('puts results first, then the remaining user text, and merges parallel calls into one message', () => {
    const body = fromMessages({
      messages: [
        user('go'),
        { role: 'assistant', content: [{ type: 'text', text: 'ok' }, call('a'), call('b')] },
        user([
          { type: 'text', text: 'and then' },
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '1' }] },
          { type: 'tool_result', tool_use_id: 'b', content: '2', is_error: true },
        ]),
      ],
    });
    expect(body.messages).toEqual([
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: 'ok',
        tool_calls: ['a', 'b'].map((id) => ({
          id,
          type: 'function',
          function: { name: 'f', arguments: '{"z":1,"a":2}' },
        })),
      },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'tool', tool_call_id: 'b', content: 'Error: 2' },
      { role: 'user', content: 'and then' },
    ]);
  });

  it('matches function_call_output by call_id, never by item id', () => {
    const body = fromResponses({
      input: [
        user('go'),
        { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}' },
        { type: 'function_call', id: 'fc_2', call_id: 'call_2', name: 'f', arguments: '' },
        { type: 'function_call_output', id: 'out', call_id: 'call_2', output: 'two' },
      ],
    });
    expect(at(body, 'messages.1.tool_calls')).toMatchObject([
      { id: 'call_1' },
      { id: 'call_2', function: { arguments: '{}' } },
    ]);
    expect(at(body, 'messages.2')).toEqual({ role: 'tool', tool_call_id: 'call_2', content: 'two' });
  });

  it('shows images of tool results in a user message after all results', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
    const body = fromMessages({
      messages: [
        user('go'),
        { role: 'assistant', content: [call('a'), call('b')] },
        user([
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'shot' }, image] },
          { type: 'tool_result', tool_use_id: 'b', content: 'x' },
        ]),
      ],
    });
    const last = at(body, 'messages.4.content.1');
    expect([2, 3, 4].map((position) => at(body, `messages.${position}.role`))).toEqual(['tool', 'tool', 'user']);
    expect(last).toEqual({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } });
  });

  it('joins user text to the result where a template refuses a user turn after a tool turn', () => {
    const body = fromMessages(
      {
        messages: [
          user('go'),
          { role: 'assistant', content: [call('a')] },
          user([
            { type: 'tool_result', tool_use_id: 'a', content: '1' },
            { type: 'text', text: 'more' },
          ]),
        ],
      },
      MISTRAL,
    );
    expect(at(body, 'messages.2')).toMatchObject({ role: 'tool', content: '1\n\nmore' });
    expect(at(body, 'messages.1.content')).toBeNull();
  });
});

describe('images', () => {
  it('passes URLs on and refuses them for engines that only take data, without fetching', () => {
    const url = 'https://example.com/a.png';
    const body = { messages: [user([{ type: 'image', source: { type: 'url', url } }])] };
    expect(at(fromMessages(body), 'messages.0.content.0')).toEqual({ type: 'image_url', image_url: { url } });
    expect(() => fromMessages(body, OLLAMA)).toThrow(/does not fetch/);
  });

  it('gives a messages backend base64 and url sources', () => {
    const body = {
      model: 'm',
      messages: [user([imagePart('data:image/jpeg;base64,QUJD'), imagePart('https://e.com/x.png')])],
    };
    const sent = translateRequest('chat', 'messages', body, options);
    expect(at(sent, 'messages.0.content')).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'QUJD' } },
      { type: 'image', source: { type: 'url', url: 'https://e.com/x.png' } },
    ]);
  });
});

describe('reasoning', () => {
  it('replays thinking in the fields vLLM reads and accepts any signature', () => {
    const body = fromMessages({
      messages: [
        user('go'),
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'b0f5-not-ours' },
            { type: 'redacted_thinking', data: 'sealed' },
            { type: 'text', text: 'yes' },
          ],
        },
        user('on'),
      ],
    });
    expect(at(body, 'messages.1')).toEqual({
      role: 'assistant',
      content: 'yes',
      reasoning: 'hm',
      reasoning_content: 'hm',
    });
  });

  it('replays reasoning from content, from our own encrypted_content, and ignores a foreign one', () => {
    expect(replayed({ content: [{ type: 'reasoning_text', text: 'a' }] })).toMatchObject({ reasoning: 'a' });
    expect(replayed({ encrypted_content: 'gAAAA-foreign' })).toEqual({ role: 'assistant', content: 'y' });
  });

  it('switches thinking only in ways the engine accepts', () => {
    const body = { messages: [user('x')], thinking: { type: 'disabled' } };
    expect(fromMessages(body, MISTRAL)).toEqual({ model: 'upstream', messages: [user('x')], max_tokens: 10 });
    expect(fromMessages(body, OLLAMA).reasoning_effort).toBe('none');
  });

  it.each([
    [{ type: 'enabled', budget_tokens: 2000 }, true],
    [{ type: 'adaptive' }, true],
    [{ type: 'disabled' }, false],
  ])('switches thinking by the template: %j', (thinking, enabled) => {
    const body = fromMessages({ messages: [user('x')], thinking, output_config: { effort: 'max' } });
    expect(body.chat_template_kwargs).toEqual({ enable_thinking: enabled, thinking: enabled });
    expect(body.reasoning_effort).toBe(enabled ? 'high' : undefined);
  });
});

describe('other fields', () => {
  it('maps structured output between the three spellings', () => {
    const schema = { type: 'object', properties: {}, additionalProperties: false };
    const messages = fromMessages({
      messages: [user('x')],
      output_config: { format: { type: 'json_schema', schema } },
    });
    expect(messages.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'output', schema, strict: true },
    });
    const responses = fromResponses({
      input: 'x',
      text: { format: { type: 'json_schema', name: 'r', schema, strict: false } },
    });
    expect(responses.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'r', schema, strict: false },
    });
    const body = {
      model: 'm',
      messages: [user('x')],
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
    };
    expect(translateRequest('chat', 'messages', body, options).output_config).toEqual({
      format: { type: 'json_schema', schema },
    });
  });

  // OpenAI refuses a schema in strict mode that does not close its objects.
  it('asks for no strict schema where the client does not', () => {
    const schema = { type: 'object', properties: { a: {} } };
    const toChat = fromResponses({ input: 'x', text: { format: { type: 'json_schema', name: 'r', schema } } });
    expect(toChat.response_format).toEqual({ type: 'json_schema', json_schema: { name: 'r', schema } });
    const format = { type: 'json_schema', json_schema: { name: 'n', schema } };
    const chat = { model: 'm', messages: [user('x')], response_format: format };
    const { text } = translateRequest('chat', 'responses', chat, options);
    expect(text).toEqual({ format: { type: 'json_schema', name: 'n', schema } });
  });

  it('maps limits, sampling and stop sequences', () => {
    expect(fromMessages({ messages: [user('x')], stop_sequences: ['END'], temperature: 0.2, top_k: 5 })).toMatchObject({
      max_tokens: 10,
      stop: ['END'],
      temperature: 0.2,
      top_k: 5,
    });
    expect(fromResponses({ input: 'x', max_output_tokens: 7 }).max_tokens).toBe(7);
    const chat = { model: 'm', messages: [user('x')], max_completion_tokens: 9, stop: 'S' };
    expect(translateRequest('chat', 'messages', chat, options)).toMatchObject({ max_tokens: 9, stop_sequences: ['S'] });
  });

  it.each(['gpt-5', 'gpt-5.6-sol', 'openai/gpt-5-mini', 'o3', 'o4-mini-2025-04-16'])(
    'have the limit under the one name that OpenAI takes for its %s',
    (model) => {
      const sent = (from: Dialect, body: object) =>
        translateRequest(from, 'chat', body, { model, quirks: quirksOf('unknown', undefined, model) });
      const messages = [user('x')];
      for (const body of [
        sent('messages', { model: 'm', messages, max_tokens: 9 }),
        sent('responses', { model: 'm', input: 'x', max_output_tokens: 9 }),
        sent('chat', { model: 'm', messages, max_tokens: 9 }),
        sent('chat', { model: 'm', messages, max_tokens: 9, max_completion_tokens: 9 }),
      ]) {
        expect(body.max_completion_tokens).toBe(9);
        expect(body).not.toHaveProperty('max_tokens');
      }
      expect(sent('chat', { model: 'm', messages })).not.toHaveProperty('max_completion_tokens');
    },
  );

  it.each(['gpt-4o', 'gpt-oss-120b', 'openai/gpt-oss-20b', 'o', 'olmo-3', 'Qwen/Qwen3'])(
    'have the limit under the name that all servers know for %s',
    (model) => {
      const body = { model: 'm', messages: [user('x')], max_tokens: 9 };
      const quirks = quirksOf('unknown', undefined, model);
      for (const from of ['messages', 'chat'] as const)
        expect(translateRequest(from, 'chat', body, { model, quirks })).toMatchObject({ max_tokens: 9 });
    },
  );

  it('continues an answer that the client began, where the engine can', () => {
    const messages = [user('Name a colour.'), { role: 'assistant', content: 'My favourite is' }];
    expect(fromMessages({ messages })).toMatchObject({ continue_final_message: true, add_generation_prompt: false });
    expect(fromMessages({ messages }, OLLAMA)).not.toHaveProperty('continue_final_message');
    expect(fromMessages({ messages: messages.slice(0, 1) })).not.toHaveProperty('continue_final_message');
  });

  // Anthropic takes an empty message at the end, and nowhere else.
  it.each(['', [], [{ type: 'text', text: '' }]])('has the model not continue the question: %j', (content) => {
    const body = fromMessages({ messages: [user('Name a colour.'), { role: 'assistant', content }] });
    expect(body.messages).toHaveLength(1);
    expect(body).not.toHaveProperty('continue_final_message');
    const asked = [user('Name a colour.'), { role: 'assistant', content: 'Red' }, { role: 'user', content: [] }];
    expect(fromMessages({ messages: asked })).not.toHaveProperty('continue_final_message');
  });

  it('leaves a limit beyond the context to the engine', () => {
    const body = { model: 'm', max_tokens: 32_000, messages: [user('x')] };
    const send = (contextLength: number) =>
      translateRequest('messages', 'chat', body, { ...options, contextLength }).max_tokens;
    expect(send(8192)).toBeUndefined();
    expect(send(100_000)).toBe(32_000);
  });

  it('always asks a stream for usage, keeping what the client asked', () => {
    const body = { model: 'm', messages: [user('x')], stream: true, stream_options: { chunk_size: 1 } };
    expect(translateRequest('chat', 'chat', body, options).stream_options).toEqual({
      chunk_size: 1,
      include_usage: true,
    });
    expect(fromResponses({ input: 'x', stream: true }).stream_options).toEqual({ include_usage: true });
    expect(fromMessages({ messages: [user('x')], stream: true }).stream_options).toEqual({
      include_usage: true,
      continuous_usage_stats: true,
    });
  });

  it('expands a stored chain and item references, and asks the backend to store nothing', () => {
    const history = parseInput('first', undefined);
    const body = {
      model: 'm',
      input: [{ type: 'item_reference', id: 'msg_1' }, user('now')],
      previous_response_id: 'r',
    };
    const references = new Map([['msg_1', [{ kind: 'text' as const, text: 'answer', id: 'msg_1' }]]]);
    const native = translateRequest('responses', 'responses', body, { ...options, history, references });
    expect(native.store).toBe(false);
    expect(native.previous_response_id).toBeUndefined();
    expect(native.input).toMatchObject([{ role: 'user' }, { role: 'assistant' }, { role: 'user' }]);
    expect(fromResponses(body, { history, references }).messages).toEqual([
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'answer' },
      { role: 'user', content: 'now' },
    ]);
    expect(() => fromResponses(body, { history })).toThrow(/not found/);
  });

  it.each([
    ['chat', { messages: [{ role: 'robot', content: '' }] }, 'messages[0].role'],
    ['chat', { messages: [user([{ type: 'input_audio' }])] }, 'messages[0].content[0].type'],
    ['messages', { messages: [user([{ type: 'container_upload' }])] }, 'messages.0.content.0'],
    ['responses', { input: [{ type: 'function_call', name: 'f' }] }, 'input[0].call_id'],
  ] as const)('says where a bad %s body is bad: %j', (dialect, body, param) => {
    const target = dialect === 'chat' ? 'messages' : 'chat';
    expect(() => translateRequest(dialect, target, { model: 'm', ...body }, options)).toThrow(
      expect.objectContaining({ status: 400, param }),
    );
  });
});
