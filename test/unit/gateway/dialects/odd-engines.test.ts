/** What engines of today write otherwise than the published dialects say. */
import { describe, expect, it } from 'vitest';
import {
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
import { callDelta, chunk, COLLECT, DONE, receive, ROLE, sse, translate, USAGE_CHUNK } from './engines.ts';
import { at, contextOf, DIALECTS, VLLM } from './support.ts';

const UNKNOWN = quirksOf('unknown', '', 'm');

describe('a reason to stop that is none', () => {
  it.each(['', 'null'])('does not make a cut answer a whole one: %j', (reason) => {
    const cut = ROLE + chunk({ content: 'half' }, reason);
    for (const to of ['messages', 'responses'] as const)
      expect(translate('chat', to, cut)).toMatch(/closed the connection/);
    const observer = new PassThroughObserver('chat', { hideUsage: false });
    observer.push(Buffer.from(cut));
    expect([observer.end(), observer.finished]).toEqual([undefined, false]);
  });

  it.each(['', 'null'])('is forgotten for the one that comes: %j', (reason) => {
    const whole = ROLE + chunk({ content: 'all' }, reason) + chunk({}, 'length');
    expect(receive('chat', 'messages', whole)).toMatchObject({ text: 'all', stop: 'max_tokens' });
    const observer = new PassThroughObserver('chat', { hideUsage: false });
    observer.push(Buffer.from(whole));
    expect(Buffer.from(observer.end() ?? []).toString()).toContain('[DONE]');
  });

  it('is none in messages, too', () => {
    const start = sse({ type: 'message_start', message: { usage: { input_tokens: 1 } } });
    const cut = start + sse({ type: 'message_delta', delta: { stop_reason: '' }, usage: {} });
    expect(translate('messages', 'chat', cut)).toMatch(/closed the connection/);
    const observer = new PassThroughObserver('messages', { hideUsage: false });
    observer.push(Buffer.from(cut));
    expect([observer.end(), observer.finished]).toEqual([undefined, false]);
  });
});

describe('half a call behind which a server writes the last event of its dialect, and no reason to stop', () => {
  const HALF = '{"city": "Par';
  const call =
    sse({ type: 'message_start', message: {} }) +
    sse({ type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'a', name: 'f', input: {} } }) +
    sse({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: HALF } });
  const stop = sse({ type: 'message_stop' });
  const halves = {
    'of chat': ['chat', ROLE + chunk(callDelta(0, { id: 'a', name: 'f', arguments: HALF })) + DONE],
    'of messages': ['messages', call + stop],
    'of messages, with the end of its block': ['messages', call + sse({ type: 'content_block_stop', index: 0 }) + stop],
  } as const;

  it.each([
    ['of chat', 'messages'],
    ['of chat', 'responses'],
    ['of messages', 'chat'],
    ['of messages', 'responses'],
    ['of messages, with the end of its block', 'chat'],
    ['of messages, with the end of its block', 'responses'],
  ] as const)('is told as cut: %s, to %s', (half, to) => {
    const [from, stream] = halves[half];
    expect(translate(from, to, stream)).toMatch(/broke off/);
  });

  it('is what the model wrote where the server says so, and a whole call needs no reason', () => {
    const half = ROLE + chunk(callDelta(0, { id: 'a', name: 'f', arguments: HALF })) + chunk({}, 'tool_calls') + DONE;
    const whole = ROLE + chunk(callDelta(0, { id: 'a', name: 'f', arguments: '{"a":1}' })) + DONE;
    for (const stream of [half, whole])
      expect(receive('chat', 'messages', stream)).toMatchObject({ stop: 'tool_use', calls: [{ name: 'f' }] });
  });
});

describe('a stop string that ended the answer', () => {
  // SGLang has those of the template of the model there, too.
  it.each([
    ['<|im_end|>', 'end_turn', null],
    ['END', 'stop_sequence', 'END'],
  ])('is told where the client asked for it: %s', (matched, reason, sequence) => {
    const request = { messages: [], stop_sequences: ['END'] };
    const expected = { stop_reason: reason, stop_sequence: sequence };
    for (const name of ['matched_stop', 'stop_reason']) {
      const choice = { index: 0, finish_reason: 'stop', [name]: matched };
      const whole = { choices: [{ ...choice, message: { content: 'Hi' } }] };
      expect(translateResponse('chat', 'messages', whole, contextOf(request)).body).toMatchObject(expected);
      const stream = ROLE + sse({ id: 'c', choices: [{ ...choice, delta: { content: 'Hi' } }] }) + DONE;
      const last = translate('chat', 'messages', stream, request).split('event: message_delta\ndata: ')[1];
      expect(JSON.parse(last?.split('\n')[0] ?? '')).toMatchObject({ delta: expected });
    }
  });
});

describe('the name of a tool', () => {
  const call = (part: Parameters<typeof callDelta>[1]) => chunk(callDelta(0, part));
  const end = chunk({}, 'tool_calls') + DONE;

  it.each([
    ['in fragments', [{ id: 'c', name: 'get_' }, { name: 'weather' }, { arguments: '{"a":1}' }]],
    ['that grows', [{ id: 'c', name: 'get_' }, { name: 'get_weather' }, { arguments: '{"a":1}' }]],
    [
      'with each fragment',
      [
        { id: 'c', name: 'get_weather', arguments: '{"a"' },
        { name: 'get_weather', arguments: ':1}' },
      ],
    ],
    [
      'behind an empty one',
      [
        { id: 'c', name: '' },
        { name: 'get_weather', arguments: '{"a":1}' },
      ],
    ],
  ])('is whole: %s', (_how, parts) => {
    for (const to of ['chat', 'responses', 'messages'] as const) {
      const { calls } = receive('chat', to, ROLE + parts.map(call).join('') + end);
      expect(calls).toEqual([{ id: 'c', name: 'get_weather', arguments: '{"a":1}' }]);
    }
  });

  it('is whole without arguments, beside another call', () => {
    const stream =
      ROLE + call({ id: 'c', name: 'a' }) + chunk(callDelta(1, { id: 'd', name: 'b', arguments: '{}' })) + end;
    expect(receive('chat', 'messages', stream).calls.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

describe('the end of a stream of chat', () => {
  it.each(['[DONE] ', ' [DONE]', '[DONE]\t'])('may have white space around it: %j', (done) => {
    const answer = receive(
      'chat',
      'messages',
      `${ROLE}${chunk({ content: 'x' })}${chunk({}, 'stop')}data: ${done}\n\n`,
    );
    expect([answer.text, answer.stop]).toEqual(['x', 'end_turn']);
  });
});

describe('a mark of byte order', () => {
  const stream = ROLE + chunk({ content: 'Hi' }) + chunk({}, 'stop') + DONE;

  it('before a stream is no part of it', () => {
    const marked = Buffer.from(`\ufeff${stream}`);
    for (let at = 0; at <= 4; at++) {
      const observer = new PassThroughObserver('chat', { hideUsage: false });
      const parts = [marked.subarray(0, at), marked.subarray(at)].map(
        (part) => observer.push(part) ?? new Uint8Array(),
      );
      expect([Buffer.concat(parts).toString(), observer.finished]).toEqual([stream, true]);
      expect(receive('chat', 'messages', `\ufeff${stream}`).text).toBe('Hi');
    }
  });

  it('before an error does not hide it', () => {
    expect(readUpstreamError(400, '\ufeff{"error":{"message":"too hot"}}').message).toBe('too hot');
  });
});

describe('line ends of an event stream', () => {
  const stream = ROLE + chunk({ content: 'Hi' }) + chunk({}, 'stop') + DONE;

  // All that the standard allows.
  it.each([
    ['returns alone', '\r', '\r\r'],
    ['a feed before a blank line with a return', '\n', '\n\r\n'],
    ['returns and feeds', '\r\n', '\r\n\r\n'],
  ])('are read wherever they are cut: %s', (_how, line, blank) => {
    const sent = Buffer.from(stream.replaceAll('\n\n', blank).replaceAll(/(?<![\r\n])\n(?![\r\n])/g, line));
    for (const size of [1, 7, 64, sent.length]) {
      const observer = new PassThroughObserver('chat', { hideUsage: false });
      const translator = new StreamTranslator('chat', 'messages', contextOf());
      let [passed, translated] = ['', ''];
      for (let at = 0; at < sent.length; at += size) {
        const part = sent.subarray(at, at + size);
        passed += Buffer.from(observer.push(part) ?? []).toString();
        translated += translator.push(part);
      }
      passed += Buffer.from(observer.end() ?? []).toString();
      expect([passed.replaceAll(/\r\n|\r/g, '\n'), observer.finished]).toEqual([stream, true]);
      expect(COLLECT.messages(translated + translator.end()).text).toBe('Hi');
    }
  });
});

describe('a character of two halves', () => {
  it.each(DIALECTS)('comes whole where an engine cuts it between two fragments: %s', (client) => {
    const stream = ROLE + chunk({ content: 'a\ud83d' }) + chunk({ content: '\ude00b' }) + chunk({}, 'stop') + DONE;
    expect(receive('chat', client, stream).text).toBe('a\u{1f600}b');
  });
});

describe('a first chunk without a choice', () => {
  // Azure says there what its filter found in the prompt.
  const first = sse({ id: '', object: 'chat.completion.chunk', choices: [], prompt_filter_results: [{}], usage: null });
  const rest = ROLE + chunk({ content: 'Hi' }) + chunk({}, 'stop');

  it('stays in a stream that passes through', () => {
    const observer = new PassThroughObserver('chat', { hideUsage: true });
    expect(String(observer.push(Buffer.from(first + rest + USAGE_CHUNK + DONE)))).toBe(first + rest + DONE);
  });

  it.each(DIALECTS)('is no answer yet in one that is translated: %s', (client) => {
    expect(receive('chat', client, first + rest + DONE)).toMatchObject({ text: 'Hi' });
  });
});

describe('usage', () => {
  const counts = { input: 10, output: 3 };
  const usages: [string, object][] = [
    ['of chat', { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } }],
    ['of responses', { input_tokens: 10, output_tokens: 3, input_tokens_details: { cached_tokens: 4 } }],
    ['of Moonshot', { prompt_tokens: 10, completion_tokens: 3, cached_tokens: 4 }],
    [
      'of DeepSeek',
      { prompt_tokens: 10, completion_tokens: 3, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 },
    ],
    ['of LiteLLM', { prompt_tokens: 10, completion_tokens: 3, cache_read_input_tokens: 4 }],
  ];

  it.each(usages)('counts in the names %s', (_whose, usage) => {
    const stream = ROLE + chunk({ content: 'Hi' }, 'stop') + sse({ id: 'c', choices: [], usage }) + DONE;
    expect(receive('chat', 'responses', stream).usage).toEqual({ ...counts, cached: 4 });
    for (const dialect of ['chat', 'responses', 'messages'] as const) {
      const whole: Record<Dialect, object> = {
        chat: { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }], usage },
        responses: { output: [], status: 'completed', usage },
        messages: { content: [], stop_reason: 'end_turn', usage },
      };
      if (dialect === 'messages' && 'input_tokens' in usage) continue;
      const { usage: read } = translateResponse(dialect, 'responses', whole[dialect], contextOf());
      expect(read).toMatchObject({ inputTokens: 10, outputTokens: 3, cachedTokens: 4 });
    }
  });
});

describe('what was thought, and is counted in the total alone', () => {
  const details = { prompt_tokens_details: { cached_tokens: 128 } };
  const counts = { prompt_tokens: 10_120, completion_tokens: 1499 };
  const thoughts = { completion_tokens_details: { reasoning_tokens: 2809 } };

  it.each([
    ['by xAI', { ...counts, ...details, ...thoughts, total_tokens: 14_428 }, [4308, 2809]],
    ['by Google', { ...counts, total_tokens: 14_428 }, [4308, 2809]],
    ['as OpenAI counts, in the output', { ...counts, ...details, ...thoughts, total_tokens: 11_619 }, [1499, 2809]],
    ['nowhere: a total with the cache', { ...counts, ...details, total_tokens: 11_747 }, [1499, 0]],
    ['nowhere: a total of less', { ...counts, total_tokens: 9 }, [1499, 0]],
    ['nowhere: a server of embeddings', { prompt_tokens: 10_120, total_tokens: 14_428 }, [0, 0]],
  ])('is output: %s', (_how, usage, [outputTokens, reasoningTokens]) => {
    const expected = { inputTokens: 10_120, outputTokens, reasoningTokens };
    const whole = { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }], usage };
    expect(translateResponse('chat', 'messages', whole, contextOf()).usage).toMatchObject(expected);
    expect(observeBody('chat', Buffer.from(JSON.stringify(whole))).usage).toMatchObject(expected);
    const observer = new PassThroughObserver('chat', { hideUsage: true });
    const stream = ROLE + chunk({ content: 'Hi' }, 'stop') + sse({ id: 'c', choices: [], usage }) + DONE;
    observer.push(Buffer.from(stream));
    expect(observer.usage).toMatchObject(expected);
  });
});

describe('what was written to a cache', () => {
  const ANTHROPIC = {
    input_tokens: 5,
    output_tokens: 3,
    cache_creation_input_tokens: 1000,
    cache_read_input_tokens: 2000,
  };
  const counts = { inputTokens: 3005, outputTokens: 3, cachedTokens: 2000, cacheWriteTokens: 1000 };
  const chat = { prompt_tokens: 3005, completion_tokens: 3 };
  const usages: [string, Dialect, object][] = [
    ['of Anthropic', 'messages', ANTHROPIC],
    ['of Anthropic in chat', 'chat', ANTHROPIC],
    ['of Anthropic in responses', 'responses', ANTHROPIC],
    ['of OpenAI', 'chat', { ...chat, prompt_tokens_details: { cached_tokens: 2000, cache_write_tokens: 1000 } }],
    ['of LiteLLM', 'chat', { ...chat, prompt_tokens_details: { cached_tokens: 2000, cache_creation_tokens: 1000 } }],
    ['of older LiteLLM', 'chat', { ...chat, cache_read_input_tokens: 2000, cache_creation_input_tokens: 1000 }],
    [
      'of OpenAI in responses',
      'responses',
      {
        input_tokens: 3005,
        output_tokens: 3,
        input_tokens_details: { cached_tokens: 2000, cache_write_tokens: 1000 },
      },
    ],
  ];
  const told = {
    chat: { prompt_tokens: 3005, prompt_tokens_details: { cached_tokens: 2000, cache_write_tokens: 1000 } },
    responses: { input_tokens: 3005, input_tokens_details: { cached_tokens: 2000, cache_write_tokens: 1000 } },
    messages: ANTHROPIC,
  };

  it.each(usages)('is counted once, and told in every dialect, in the names %s', (_whose, dialect, usage) => {
    const whole: Record<Dialect, object> = {
      chat: { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }], usage },
      responses: { output: [], status: 'completed', usage },
      messages: { content: [], stop_reason: 'end_turn', usage },
    };
    const { output_tokens: _output, ...atStart } = usage as Record<string, unknown>;
    const streams: Record<Dialect, string> = {
      chat: ROLE + chunk({ content: 'Hi' }, 'stop') + sse({ id: 'c', choices: [], usage }) + DONE,
      responses: sse({ type: 'response.completed', response: whole.responses }),
      messages:
        sse({ type: 'message_start', message: { usage: { ...atStart, output_tokens: 1 } } }) +
        sse({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }) +
        sse({ type: 'message_stop' }),
    };
    for (const client of DIALECTS) {
      const answer = translateResponse(dialect, client, whole[dialect], contextOf({ messages: [] }));
      expect(answer.usage).toMatchObject(counts);
      expect(at(answer.body, 'usage')).toMatchObject(told[client]);
      const translator = new StreamTranslator(dialect, client, contextOf({ messages: [] }));
      translator.push(Buffer.from(streams[dialect]));
      expect(translator.usage).toMatchObject(counts);
    }
    const observer = new PassThroughObserver(dialect, { hideUsage: true });
    observer.push(Buffer.from(streams[dialect]));
    expect(observer.usage).toMatchObject(counts);
  });

  it('is never more than what no cache had', () => {
    const usage = { ...chat, prompt_tokens_details: { cached_tokens: 2500, cache_write_tokens: 3005 } };
    const answer = { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }], usage };
    expect(translateResponse('chat', 'messages', answer, contextOf()).usage).toMatchObject({ cacheWriteTokens: 505 });
  });
});

describe('numbers beyond those of JavaScript', () => {
  const input = '{"id":9223372036854775807,"ratio":1.0}';

  it('are whole in the input of a call that comes as a whole', () => {
    const chat = `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":${JSON.stringify(input)}}}]},"finish_reason":"tool_calls"}]}`;
    const messages = `{"content":[{"type":"tool_use","id":"c","name":"f","input":${input}}],"stop_reason":"tool_use"}`;
    const { body } = translateResponse('chat', 'messages', readAnswer(Buffer.from(chat)), contextOf());
    expect(JSON.stringify(body)).toContain(`"input":${input}`);
    const back = translateResponse('messages', 'chat', readAnswer(Buffer.from(messages)), contextOf());
    expect(at(back.body, 'choices.0.message.tool_calls.0.function.arguments')).toBe(input);
  });

  it('are whole in events that have them as an object', () => {
    const delta = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":${input}}}]}}]}`;
    const chat = `${ROLE}data: ${delta}\n\n${chunk({}, 'tool_calls')}${DONE}`;
    expect(receive('chat', 'responses', chat).calls[0]?.arguments).toBe(input);
    const start = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":${input}}}`;
    const messages = `data: ${start}\n\n${sse({ type: 'content_block_stop', index: 0 })}${sse({ type: 'message_delta', delta: { stop_reason: 'tool_use' } })}${sse({ type: 'message_stop' })}`;
    expect(receive('messages', 'chat', messages).calls[0]?.arguments).toBe(input);
  });

  it('are whole in calls that a client of messages replays to its server', () => {
    const call = { kind: 'call' as const, callId: 'c', name: 'f', arguments: input };
    const body = translateRequest(
      'chat',
      'messages',
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'go' },
          { role: 'assistant', tool_calls: [{ id: 'c', function: call }] },
        ],
      },
      { model: 'u', quirks: VLLM },
    );
    expect(JSON.stringify(body)).toContain(`"input":${input}`);
  });
});

describe('thinking that is signed and not shown', () => {
  const thought = { type: 'thinking', thinking: '', signature: 'SIGNED' };
  const events = [
    { type: 'message_start', message: { usage: { input_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'SIGNED' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ].map(sse);

  function replayed(items: unknown): unknown {
    const input = [{ role: 'user', content: 'a' }, ...(items as object[]), { role: 'user', content: 'b' }];
    const body = translateRequest('responses', 'messages', { model: 'm', input }, { model: 'u', quirks: UNKNOWN });
    return at(body, 'messages.1.content');
  }

  it('comes back to its server through a client of responses', () => {
    const whole = { content: [thought, { type: 'text', text: 'Hi' }], stop_reason: 'end_turn' };
    const { body } = translateResponse('messages', 'responses', whole, contextOf());
    expect(replayed(at(body, 'output'))).toEqual([thought, { type: 'text', text: 'Hi' }]);
    const translator = new StreamTranslator('messages', 'responses', contextOf());
    translator.push(Buffer.from(events.join('')));
    expect(replayed(at(translator.response, 'output'))).toEqual([thought, { type: 'text', text: 'Hi' }]);
  });

  it('reaches clients of messages with its signature, also when it comes without a text at all', () => {
    const stream = translate('messages', 'messages', events.join(''));
    expect(stream).toContain('"signature":"SIGNED"');
    const replay = [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', signature: 'SIGNED' },
          { type: 'text', text: 'Hi' },
        ],
      },
      { role: 'user', content: 'b' },
    ];
    expect(() =>
      translateRequest(
        'messages',
        'chat',
        { model: 'm', max_tokens: 5, messages: replay },
        { model: 'u', quirks: VLLM },
      ),
    ).not.toThrow();
  });
});

describe('errors', () => {
  it.each([
    'Invalid JSON at line:12 column:40',
    'Token limit:4096 exceeded',
    'chat_template.jinja:128: undefined',
    'top-k:40 is too low',
  ])('say where and how much: %s', (text) =>
    expect(readUpstreamError(400, JSON.stringify({ error: { message: text } })).message).toBe(text),
  );
});

describe('a conversation', () => {
  it('has the results of calls right behind them, also where something was said before', () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
    const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: `of ${id}` });
    const input = [
      { role: 'user', content: 'go' },
      call('a'),
      call('b'),
      { role: 'user', content: 'hurry' },
      output('b'),
      { role: 'developer', content: 'be calm' },
      output('a'),
      call('a'),
      output('a'),
      { ...output('a'), output: 'more' },
    ];
    const chat = translateRequest('responses', 'chat', { model: 'm', input }, { model: 'u', quirks: VLLM });
    const shown = (chat.messages as Record<string, unknown>[]).map((message) => [message.role, message.tool_call_id]);
    expect(shown.slice(0, 4)).toEqual([
      ['user', undefined],
      ['assistant', undefined],
      ['tool', 'b'],
      ['tool', 'a'],
    ]);
    expect(shown.slice(-2)).toEqual([
      ['assistant', undefined],
      ['tool', 'a_2'],
    ]);
    expect(at(chat, `messages.${shown.length - 1}.content`)).toBe('of a\n\nmore');
  });

  it('goes on from the summary that Anthropic made of it', () => {
    const messages = [
      { role: 'user', content: 'long ago' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Well.' },
          { type: 'compaction', content: 'They talked.' },
          { type: 'text', text: 'So.' },
        ],
      },
      { role: 'user', content: 'now' },
    ];
    const chat = translateRequest(
      'messages',
      'chat',
      { model: 'm', max_tokens: 5, system: 'S', messages },
      { model: 'u', quirks: VLLM },
    );
    expect(chat.messages).toEqual([
      { role: 'system', content: 'S' },
      { role: 'user', content: 'Summary of the conversation until here:\n\nThey talked.' },
      { role: 'assistant', content: 'So.' },
      { role: 'user', content: 'now' },
    ]);
  });
});

describe('what one way in knows, all know', () => {
  const data = `data:text/plain;base64,${Buffer.from('grüß dich').toString('base64')}`;
  const file = { type: 'file', file: { filename: 'a.txt', file_data: data } };

  it.each([
    ['chat', VLLM],
    ['messages', VLLM],
  ] as const)('a text file in chat is text for an engine with %s', (to, quirks) => {
    const body = { model: 'm', messages: [{ role: 'user', content: [file] }] };
    expect(JSON.stringify(translateRequest('chat', to, body, { model: 'u', quirks }))).toContain('a.txt:\\ngrüß dich');
    const pdf = { ...file, file: { file_data: 'data:application/pdf;base64,eA==' } };
    const bad = { model: 'm', messages: [{ role: 'user', content: [pdf] }] };
    expect(() => translateRequest('chat', to, bad, { model: 'u', quirks })).toThrow(/application\/pdf/);
  });

  it('a server that is not known gets a file as it is', () => {
    const body = { model: 'm', messages: [{ role: 'user', content: [file] }] };
    expect(translateRequest('chat', 'chat', body, { model: 'u', quirks: UNKNOWN }).messages).toBe(body.messages);
  });

  it('a document of messages is text as base64, too', () => {
    const source = { type: 'base64', media_type: 'text/plain', data: Buffer.from('grüß dich').toString('base64') };
    const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: [{ type: 'document', source }] }] };
    expect(at(translateRequest('messages', 'chat', body, { model: 'u', quirks: VLLM }), 'messages.0.content')).toBe(
      'grüß dich',
    );
  });

  it('a temperature above 1 is refused where the scale ends there', () => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], temperature: 1.5 };
    expect(() => translateRequest('chat', 'messages', body, { model: 'u', quirks: UNKNOWN })).toThrow(
      expect.objectContaining({ param: 'temperature' }),
    );
    expect(translateRequest('chat', 'messages', body, { model: 'u', quirks: VLLM }).temperature).toBe(1.5);
  });
});
