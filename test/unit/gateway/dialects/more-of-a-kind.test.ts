/** Further cases of the kinds in which clients and engines were found to differ. */
import { describe, expect, it } from 'vitest';
import { parseBody } from '../../../../src/gateway/calls/parse-body.ts';
import { spliceBody } from '../../../../src/gateway/calls/splice-body.ts';
import {
  errorInAnswer,
  observeBody,
  PassThroughObserver,
  quirksOf,
  readAnswer,
  readUpstreamError,
  StreamTranslator,
  translateRequest,
  translateResponse,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { readItems, writeItems } from '../../../../src/gateway/state/item-lines.ts';
import { chunk, DONE, receive, ROLE, sse } from './engines.ts';
import { at, contextOf, DIALECTS, VLLM } from './support.ts';

const BIG = '9223372036854775807';
const OTHER = quirksOf('unknown', undefined, 'm');

function sent(from: Dialect, to: Dialect, body: object, quirks = OTHER): object {
  return translateRequest(from, to, { model: 'm', max_tokens: 9, ...body }, { model: 'u', quirks });
}

describe('numbers as they were written', () => {
  it.each(['1000.0', '1e3', '1000'])('are numbers to the tools that OpenAI defines: %s', (written) => {
    const call = { name: 'shell', arguments: `{"commands":["ls"],"timeout_ms":${written}}` };
    const message = { tool_calls: [{ id: 'c', function: call }] };
    const answer = { choices: [{ finish_reason: 'tool_calls', message }] };
    const { body } = translateResponse('chat', 'responses', answer, contextOf({ tools: [{ type: 'shell' }] }));
    expect(at(body, 'output.0.action.timeout_ms')).toBe(1000);
  });

  it('stay so in fields that nobody here knows, where a body is written anew', () => {
    const rest = `"documents":[{"id":${BIG}}],"mm_processor_kwargs":{"fps":1.0},"model":"alias"}`;
    const bytes = Buffer.from(`{"messages":[{"role":"user","content":"${'x'.repeat(5000)}"}],${rest}`);
    const body = parseBody(bytes) as Record<string, unknown>;
    const written = spliceBody(bytes, body, { ...body, model: 'u' }).toString();
    expect(written).toContain(rest.replace('alias', 'u'));
  });

  it.each(DIALECTS)('stay so in arguments that an engine of responses writes as an object: %s', (client) => {
    const item = `{"type":"function_call","call_id":"c","name":"f","arguments":{"id":${BIG},"ratio":1.0}}`;
    const whole = readAnswer(Buffer.from(`{"object":"response","status":"completed","output":[${item}]}`));
    const answer = JSON.stringify(translateResponse('responses', client, whole, contextOf()).body);
    const done = `{"type":"response.output_item.done","output_index":0,"item":${item}}`;
    const translator = new StreamTranslator('responses', client, contextOf());
    const stream = translator.push(Buffer.from(`data: ${done}\n\n`));
    for (const text of [answer, stream]) expect(text.replaceAll('\\', '')).toContain(`"id":${BIG},"ratio":1.0`);
  });

  it('stay so in what is stored of a response, where a server writes the input of a call as an object', () => {
    const input = `{"id":${BIG},"ratio":1.0}`;
    const output = [
      `{"type":"function_call","call_id":"c","name":"f","arguments":${input}}`,
      `{"type":"tool_search_call","call_id":"s","execution":"client","arguments":${input}}`,
    ];
    const response = `{"id":"r","object":"response","status":"completed","output":[${output.join()}],"usage":{"input_tokens":2.0,"output_tokens":1}}`;
    const observer = new PassThroughObserver('responses', {
      hideUsage: false,
      state: { store: true, previous_response_id: null },
    });
    observer.push(Buffer.from(`data: {"type":"response.completed","response":${response}}\n\n`));
    for (const { items, usage } of [observer, observeBody('responses', Buffer.from(response))]) {
      expect(items.map((item) => item.kind === 'call' && item.arguments)).toEqual([input, input]);
      expect(usage).toMatchObject({ inputTokens: 2, outputTokens: 1 });
    }
  });

  it.each([
    `{"kind":"tools","tools":[{"parameters":{"maximum":${BIG},"multipleOf":1.0}}]}`,
    `{"id":"i","kind":"given","item":{"type":"item_of_tomorrow","id":"i","at":[${BIG},1.0]}}`,
  ])('stay so in a stored conversation: %s', (line) => {
    expect(writeItems(readItems(line))).toBe(line);
  });
});

describe('an answer that was cut or given up is not told as whole', () => {
  const whole = (from: Dialect, to: Dialect, body: object) => translateResponse(from, to, body, contextOf()).body;
  const chat = (finish: string) => ({ choices: [{ finish_reason: finish, message: { content: 'x' } }] });

  it.each([
    'model_length',
    'max_tokens',
    'MAX_TOKENS',
    'model_context_window_exceeded',
    // vLLM's repetition_detection, watsonx
    'repetition',
    'time_limit',
  ])('by a limit: %s', (finish) => {
    expect(at(whole('chat', 'messages', chat(finish)), 'stop_reason')).toBe('max_tokens');
    expect(at(whole('chat', 'responses', chat(finish)), 'status')).toBe('incomplete');
    expect(receive('chat', 'messages', ROLE + chunk({ content: 'x' }) + chunk({}, finish) + DONE).stop).toBe(
      'max_tokens',
    );
  });

  // Bedrock, Google
  it.each(['SAFETY', 'sensitive', 'guardrail_intervened', 'IMAGE_SAFETY', 'LANGUAGE'])('by a filter: %s', (finish) => {
    expect(at(whole('chat', 'messages', chat(finish)), 'stop_reason')).toBe('refusal');
  });

  it.each([
    'cancelled',
    'timeout',
    'network_error',
    'insufficient_system_resource',
    'abort',
    'ERROR',
    // Google, Bedrock
    'TOO_MANY_TOOL_CALLS',
    'UNEXPECTED_TOOL_CALL',
    'MALFORMED_RESPONSE',
    'MISSING_THOUGHT_SIGNATURE',
    'malformed_tool_use',
  ])('by the engine, in any dialect: %s', (reason) => {
    const message = { content: [{ type: 'text', text: 'x' }], stop_reason: reason };
    expect(() => whole('chat', 'messages', chat(reason))).toThrow('gave up the answer');
    expect(() => whole('messages', 'chat', message)).toThrow('gave up the answer');
    const events: [Dialect, string][] = [
      ['chat', ROLE + chunk({ content: 'x' }) + chunk({}, reason) + DONE],
      [
        'messages',
        sse({ type: 'message_start', message: {} }) +
          sse({ type: 'message_delta', delta: { stop_reason: reason } }) +
          sse({ type: 'message_stop' }),
      ],
    ];
    for (const [dialect, stream] of events)
      for (const client of DIALECTS) {
        const translator = new StreamTranslator(dialect, client, contextOf());
        translator.push(Buffer.from(stream));
        expect(translator.error?.message).toContain('gave up the answer');
      }
    for (const [dialect, stream] of events) {
      const observer = new PassThroughObserver(dialect, { hideUsage: true });
      const told = String(observer.push(Buffer.from(stream)));
      expect(told).toContain('gave up the answer');
      expect(told).not.toContain(`"${reason}"`);
      expect(observer.error?.status).toBe(502);
    }
    for (const body of [chat(reason), message])
      expect(errorInAnswer(Buffer.from(JSON.stringify(body)))?.message).toContain('gave up the answer');
  });

  it('but not by what a tool or a text says of itself', () => {
    const input = { stop_reason: 'error', finish_reason: 'error' };
    const message = { stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'c', name: 'f', input }] };
    expect(errorInAnswer(Buffer.from(JSON.stringify(message)))).toBeUndefined();
    const text = chunk({ content: JSON.stringify(input) }) + chunk({}, 'stop') + DONE;
    const observer = new PassThroughObserver('chat', { hideUsage: true });
    expect([String(observer.push(Buffer.from(text))), observer.error]).toEqual([text, undefined]);
  });

  const response = (status: string) => ({
    object: 'response',
    status,
    error: null,
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }],
  });
  const completed = (status: string) =>
    sse({ type: 'response.created', response: {} }) +
    sse({ type: 'response.output_text.delta', output_index: 0, delta: 'x' }) +
    sse({ type: 'response.completed', response: response(status) });

  it.each(['failed', 'cancelled'])('by the status of a response: %s', (status) => {
    expect(() => whole('responses', 'chat', response(status))).toThrow('gave up the answer');
    const translator = new StreamTranslator('responses', 'messages', contextOf());
    translator.push(Buffer.from(completed(status)));
    expect(translator.error?.status).toBe(502);
  });

  // vLLM ends each stream of responses with this event.
  it('by the status of a response in an event that is called completed', () => {
    expect(receive('responses', 'messages', completed('incomplete')).stop).toBe('max_tokens');
  });

  it('where another answer to the same call is whole', () => {
    const answer = (index: number, finish: string | null) =>
      sse({ id: 'c', choices: [{ index, delta: { content: 'x' }, finish_reason: finish }] });
    for (const hasSeveral of [false, true]) {
      const observer = new PassThroughObserver('chat', { hideUsage: true, hasSeveral });
      for (const event of [answer(0, null), answer(1, null), answer(0, 'stop'), answer(1, null)])
        observer.push(Buffer.from(event));
      observer.end();
      expect(observer.finished).toBe(!hasSeveral);
    }
  });
});

describe('two tools of one name', () => {
  const fn = (description: string) => ({ name: 'f', description, parameters: {} });
  const TOOLS: Record<Dialect, (description: string) => object> = {
    chat: (description) => ({ type: 'function', function: fn(description) }),
    responses: (description) => ({ type: 'function', ...fn(description) }),
    messages: (description) => ({ name: 'f', description, input_schema: {} }),
  };

  it.each(DIALECTS)('are refused also by engines of the same dialect, unless they are one: %s', (dialect) => {
    const body = { input: 'x', messages: [{ role: 'user', content: 'x' }] };
    const tool = TOOLS[dialect];
    expect(() => sent(dialect, dialect, { ...body, tools: [tool('a'), tool('b')] })).toThrow("two are 'f'");
    expect(() => sent(dialect, dialect, { ...body, tools: [tool('a'), tool('a')] })).not.toThrow();
  });

  it('are refused where one is free-form, or a function of the time before tools', () => {
    const body = { messages: [{ role: 'user', content: 'x' }] };
    const tools = [TOOLS.chat('a'), { type: 'custom', custom: { name: 'f' } }];
    expect(() => sent('chat', 'chat', { ...body, tools })).toThrow("two are 'f'");
    for (const functions of [[fn('a'), fn('b')], [fn('b')]])
      expect(() => sent('chat', 'chat', { ...body, functions, tools: tools.slice(0, 1) })).toThrow("two are 'f'");
    expect(() => sent('chat', 'chat', { ...body, functions: [fn('a')] })).not.toThrow();
  });
});

describe('what Anthropic refuses, and OpenAI takes', () => {
  const body = { messages: [{ role: 'user', content: 'q' }] };
  const schemaOf = (parameters: object) => {
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    return at(sent('chat', 'messages', { ...body, tools }), 'tools.0.input_schema');
  };

  it('a schema without a type', () => {
    expect(schemaOf({})).toEqual({ type: 'object' });
    expect(schemaOf({ type: 'object', properties: { a: {} } })).toEqual({ type: 'object', properties: { a: {} } });
  });

  it.each([
    ['minimal', 'low'],
    ['xhigh', 'xhigh'],
  ])('an effort of another scale: %s', (effort, told) =>
    expect(sent('chat', 'messages', { ...body, reasoning_effort: effort })).toMatchObject({
      output_config: { effort: told },
    }),
  );

  it.each([
    [1024, undefined],
    [1025, { type: 'enabled', budget_tokens: 1024 }],
    [8000, { type: 'enabled', budget_tokens: 4000 }],
  ])('thinking for which an answer of %i tokens has no room', (max_tokens, thinking) => {
    const asked = { ...body, max_tokens, chat_template_kwargs: { enable_thinking: true } };
    expect(at(sent('chat', 'messages', asked), 'thinking')).toEqual(thinking);
  });
});

describe('a history that began elsewhere', () => {
  const items = (...input: object[]) =>
    sent('responses', 'chat', { input: [{ role: 'user', content: 'q' }, ...input] });

  // Clients that store nothing leave ids out, as Codex does.
  it.each([
    { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } },
    { type: 'file_search_call', queries: ['x'], results: null },
    { type: 'code_interpreter_call', code: '1', outputs: null },
    { type: 'image_generation_call', status: 'completed', result: 'aGk=' },
    { type: 'mcp_call', name: 'look', arguments: '{}', output: 'x' },
  ])('may have a call without an id: $type', (item) => {
    const messages = at(items(item, { ...item }), 'messages') as object[];
    const calls = messages.flatMap((message) => (at(message, 'tool_calls') as object[] | undefined) ?? []);
    const results = messages.flatMap((message) => at(message, 'tool_call_id') ?? []);
    expect(calls).toHaveLength(2);
    expect(results).toEqual(calls.map((call) => at(call, 'id')));
    expect(new Set(results).size).toBe(2);
  });

  it('may have arguments as an object, and snapshots of the client', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: { a: 1 } };
    const output = { type: 'function_call_output', call_id: 'c', output: 'ok' };
    const body = items({ type: 'ghost_snapshot', ghost_commit: {} }, call, output);
    expect(at(body, 'messages.1.tool_calls.0.function.arguments')).toBe('{"a":1}');
  });

  const chat = (...messages: object[]) =>
    at(sent('chat', 'messages', { messages: [{ role: 'user', content: 'q' }, ...messages] }), 'messages');

  it('may have calls of functions, which came before tools', () => {
    const messages = chat(
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
      { role: 'function', name: 'f', content: '42' },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":2}' } },
      { role: 'function', name: 'f', content: '43' },
    );
    expect(at(messages, '1.content.0')).toMatchObject({ type: 'tool_use', name: 'f', input: { a: 1 } });
    expect(at(messages, '2.content.0')).toMatchObject({ type: 'tool_result', content: '42' });
    expect(at(messages, '3.content.0')).toMatchObject({ input: { a: 2 } });
    expect(at(messages, '4.content.0')).toMatchObject({ content: '43' });
  });

  it('may call one function again, and have an id that a function would get', () => {
    const call = (name: string) => ({ role: 'assistant', content: null, function_call: { name, arguments: '{}' } });
    const result = (name: string, content: string) => ({ role: 'function', name, content });
    const own = { id: 'call_f_2', type: 'function', function: { name: 'g', arguments: '{}' } };
    const messages = chat(
      call('f'),
      call('f'),
      call('f_3'),
      result('f', '1'),
      result('f', '2'),
      result('f_3', '3'),
      call('f'),
      result('f', '4'),
      { role: 'assistant', content: null, tool_calls: [own] },
      { role: 'tool', tool_call_id: own.id, content: '5' },
    ) as { content: { type: string; id?: string; tool_use_id?: string; content?: string }[] }[];
    const blocks = messages.flatMap(({ content }) => content);
    const calls = blocks.flatMap(({ id }) => id ?? []);
    expect(calls).toHaveLength(5);
    expect(new Set(calls).size).toBe(5);
    expect(calls[0]).toBe('call_f');
    const results = blocks.filter(({ type }) => type === 'tool_result');
    expect(results.map(({ content }) => content)).toEqual(['1', '2', '3', '4', '5']);
    expect(results.map(({ tool_use_id: id }) => id)).toEqual(calls);
  });

  it('may have an empty field of reasoning beside the one in use', () => {
    const messages = [{ role: 'assistant', content: 'a', reasoning_content: '', reasoning: 'hm' }];
    expect(at(sent('chat', 'messages', { messages }, VLLM), 'messages.0.content.0')).toMatchObject({ thinking: 'hm' });
  });

  it('is refused by the name of its field where it is white space only', () => {
    expect(() => sent('chat', 'messages', { messages: [{ role: 'user', content: ' ' }] })).toThrow("'messages'");
    expect(() => sent('responses', 'messages', { input: ' ' })).toThrow("'input'");
  });

  it('may have parameters in the type of an image', () => {
    const url = 'data:image/png;charset=utf-8;base64,AA==';
    const messages = chat({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] });
    const source = { type: 'base64', media_type: 'image/png', data: 'AA==' };
    expect(at(messages, '0.content.1')).toEqual({ type: 'image', source });
  });

  it.each([{ type: 'custom' }, { type: 'function', function: { name: 'g' } }])(
    'allows no tool that it does not offer: %j',
    (tool) => {
      const tools = [{ type: 'function', function: { name: 'f' } }];
      const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [tool] } };
      const body = { messages: [{ role: 'user', content: 'q' }], tools, tool_choice };
      expect(() => sent('chat', 'messages', body)).toThrow(/'tool_choice\.allowed_tools\.tools/);
    },
  );

  it.each([
    [5000, 2048],
    [50, 1024],
  ])('may ask for more thinking than an answer has room for, or less than the least: %i', (thinking_budget, told) => {
    const body = { messages: [{ role: 'user', content: 'q' }], max_tokens: 4096, thinking_budget };
    expect(at(sent('chat', 'messages', body), 'thinking.budget_tokens')).toBe(told);
  });

  it('may have calls of custom tools', () => {
    const call = { id: 'c', type: 'custom', custom: { name: 'patch', input: 'raw' } };
    const messages = chat({ role: 'assistant', content: null, tool_calls: [call] });
    expect(at(messages, '1.content.0')).toMatchObject({ name: 'patch', input: { input: 'raw' } });
  });

  it('may have thoughts among its content', () => {
    const thinking = [{ type: 'text', text: 'hm' }];
    const content = [
      { type: 'thinking', thinking },
      { type: 'text', text: 'yes' },
    ];
    const messages = [
      { role: 'user', content: 'q' },
      { role: 'assistant', content },
    ];
    expect(at(sent('chat', 'messages', { messages }, VLLM), 'messages.1.content')).toMatchObject([
      { thinking: 'hm' },
      { text: 'yes' },
    ]);
  });

  it('may have white space for a text, which Anthropic takes nowhere', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = chat(
      { role: 'assistant', content: '\n\n', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: ' ' },
      {
        role: 'user',
        content: [
          { type: 'text', text: ' ' },
          { type: 'text', text: 'go on' },
        ],
      },
    );
    expect(messages).toMatchObject([
      {},
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c' }] },
      { role: 'user', content: [{ type: 'tool_result' }, { type: 'text', text: 'go on' }] },
    ]);
  });

  it('is refused by name where what was said is kept elsewhere', () => {
    expect(() => chat({ role: 'assistant', content: null, audio: { id: 'a' } })).toThrow('OpenAI keeps');
  });
});

describe('what engines read beside the published fields', () => {
  const more = {
    top_k: 5,
    min_p: 0.1,
    seed: 7,
    repetition_penalty: 1.1,
    chat_template_kwargs: { enable_thinking: false },
  };
  it.each(DIALECTS)('reaches them in a translation, too: %s', (dialect) => {
    const body = { input: 'x', messages: [{ role: 'user', content: 'x' }], tools: [], ...more };
    expect(sent(dialect, 'chat', body)).toMatchObject(more);
  });

  it('has a stop for responses as for chat', () => {
    expect(sent('responses', 'chat', { input: 'x', stop: 'END' })).toMatchObject({ stop: ['END'] });
    expect(sent('responses', 'messages', { input: 'x', stop: ['END'] })).toMatchObject({ stop_sequences: ['END'] });
  });
});

describe('the words that agents need', () => {
  it.each([
    "tools.0.function.parameters.properties.local: 'x' is not of type 'string'",
    'Invalid schema at body.tools.12.function.parameters.properties.internal',
    'input.3.content.0.private is unknown',
    'schema.properties.dev is required',
    'This template requires node v20.1',
    // Kimi's ids of calls
    'no call functions.search:12 for this tool message',
  ])('pass the filter of addresses: %s', (message) => {
    expect(readUpstreamError(400, JSON.stringify({ error: { message } })).message).toBe(message);
  });

  it.each(['vllm.internal:8000', 'tools.internal', 'node-1.gpu.local', 'messages.svc.cluster.local'])(
    'are no addresses: %s',
    (name) => {
      const { message } = readUpstreamError(500, JSON.stringify({ error: { message: `cannot reach ${name} now` } }));
      expect(message).toBe('cannot reach [address] now');
    },
  );
});

describe('thinking, as clients of chat ask for it at other vendors', () => {
  const messages = [{ role: 'user', content: 'q' }];
  const ON = { type: 'enabled', budget_tokens: 2048 };

  it.each(['"reasoning":{"max_tokens":2048.0}', '"thinking":{"type":"enabled","budget_tokens":2.048e3}'])(
    'has a budget however it is written: %s',
    (written) => {
      const body = parseBody(Buffer.from(`{"model":"m",${written}}`)) as object;
      expect(at(sent('chat', 'messages', { messages, max_tokens: 9000, ...body }), 'thinking')).toEqual(ON);
    },
  );

  it.each<[object, object, object]>([
    [{ reasoning: { effort: 'high' } }, { output_config: { effort: 'high' } }, { reasoning: { effort: 'high' } }],
    [{ reasoning: { effort: 'none' } }, { thinking: { type: 'disabled' } }, { reasoning: { effort: 'none' } }],
    [{ reasoning: { max_tokens: 2048 } }, { thinking: ON }, {}],
    [{ reasoning: { enabled: false } }, { thinking: { type: 'disabled' } }, { reasoning: { effort: 'none' } }],
    [{ thinking: ON }, { thinking: ON }, {}],
    [{ thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }, { reasoning: { effort: 'none' } }],
    [{ enable_thinking: true, thinking_budget: 2048 }, { thinking: ON }, {}],
    [{ enable_thinking: false }, { thinking: { type: 'disabled' } }, { reasoning: { effort: 'none' } }],
    [{ reasoning: {}, thinking: null, enable_thinking: 'yes' }, {}, {}],
  ])('goes to servers of other dialects: %j', (asked, inMessages, inResponses) => {
    const body = { messages, max_tokens: 4096, ...asked };
    const about = (to: Dialect): object => {
      const { reasoning, thinking, output_config: output } = sent('chat', to, body) as Record<string, unknown>;
      return JSON.parse(JSON.stringify({ reasoning, thinking, output_config: output })) as object;
    };
    expect(about('messages')).toEqual(inMessages);
    expect(about('responses')).toEqual(inResponses);
  });
});
