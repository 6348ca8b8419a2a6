/** Streams of the messages dialect and of responses, out of the test suites of Anthropic's client and of Codex. */
import type { StreamCase } from './stream-case.ts';

const SDK = 'anthropics/anthropic-sdk-python tests/lib/streaming/fixtures/';
const CODEX = 'openai/codex codex-rs/core/tests/common/responses.rs ';

const event = (type: string, fields: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const start = (more: object = { usage: { input_tokens: 11, output_tokens: 1 } }) =>
  event('message_start', {
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [],
      model: 'm',
      stop_reason: null,
      stop_sequence: null,
      ...more,
    },
  });
const NO_USAGE = start({});
const open = (index: number, block: object) => event('content_block_start', { index, content_block: block });
const add = (index: number, fields: object, more: object = {}) =>
  event('content_block_delta', { index, delta: fields, ...more });
const close = (index: number) => event('content_block_stop', { index });
const text = (index: number, ...pieces: string[]) =>
  open(index, { type: 'text', text: '' }) +
  pieces.map((piece) => add(index, { type: 'text_delta', text: piece })).join('') +
  close(index);
const json = (index: number, ...pieces: string[]) =>
  pieces.map((piece) => add(index, { type: 'input_json_delta', partial_json: piece })).join('');
const end = (reason: string, usage: object = { output_tokens: 8 }, more: object = {}) =>
  event('message_delta', { delta: { stop_reason: reason, stop_sequence: null, ...more }, usage }) +
  event('message_stop');
const PING = 'event: ping\ndata: {"type": "ping"}\n\n';

const item = (fields: object) => event('response.output_item.done', { item: fields });
const COMPLETED = event('response.completed', { response: { id: 'resp1', usage: null } });

export const MESSAGES_STREAMS: readonly StreamCase[] = [
  {
    source: `${SDK}basic_response.txt`,
    from: 'messages',
    bytes:
      start() +
      open(0, { type: 'text', text: '' }) +
      PING +
      add(0, { type: 'text_delta', text: 'Hello' }) +
      add(0, { type: 'text_delta', text: '!' }) +
      close(0) +
      end('end_turn'),
    text: 'Hello!',
    stop: { chat: 'stop', responses: 'completed', messages: 'end_turn' },
  },
  {
    source: `${SDK}tool_use_response.txt`,
    from: 'messages',
    bytes:
      start() +
      text(0, 'I', "'ll check the current weather in Paris for you.") +
      open(1, { type: 'tool_use', id: 'toolu_1', name: 'get_weather', caller: { type: 'direct' }, input: {} }) +
      json(1, '', '{"locati', 'on": "P', 'ar', 'is"}') +
      close(1) +
      end('tool_use'),
    text: "I'll check the current weather in Paris for you.",
    calls: [{ name: 'get_weather', arguments: '{"location": "Paris"}' }],
    stop: { chat: 'tool_calls', responses: 'completed', messages: 'tool_use' },
  },
  {
    source: `${SDK}incomplete_partial_json_response.txt`,
    from: 'messages',
    // Anthropic pads its events with blanks.
    bytes: (
      start() +
      text(0, 'I', "'ll create a guide.") +
      open(1, { type: 'tool_use', id: 'toolu_1', name: 'make_file', input: {} }) +
      json(1, '', '{"filename": "taxes.txt', '", "lines_of_text": [\n"# GUIDE",') +
      end('max_tokens', { output_tokens: 124 })
    ).replaceAll('}\n\n', '        }\n\n'),
    text: "I'll create a guide.",
    calls: [{ name: 'make_file', arguments: '{"filename": "taxes.txt", "lines_of_text": [\n"# GUIDE",' }],
    stop: { chat: 'length', responses: 'max_output_tokens', messages: 'max_tokens' },
  },
  {
    source: `${SDK}missing_usage_rich_delta_response.txt`,
    from: 'messages',
    bytes:
      NO_USAGE +
      text(0, 'hi') +
      end('end_turn', {
        input_tokens: 11,
        output_tokens: 1,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 5,
        server_tool_use: { web_search_requests: 2 },
        cache_creation: { ephemeral_5m_input_tokens: 3 },
      }),
    text: 'hi',
  },
  {
    source: `${SDK}usage_omitted_response.txt`,
    from: 'messages',
    bytes: NO_USAGE + text(0, 'Hello') + end('end_turn', { input_tokens: 12, output_tokens: 6 }),
    text: 'Hello',
  },
  {
    source: `${SDK}extra_fields_response.txt`,
    from: 'messages',
    bytes:
      start({ private_field: { nested: { values: [1, 2] } }, usage: { input_tokens: 11, output_tokens: 1 } }) +
      open(0, { type: 'text', text: '' }) +
      add(0, { type: 'text_delta', text: 'Hello' }, { private_field: { nested: { values: [3] } } }) +
      add(0, { type: 'text_delta', text: '!' }, { private_field: { nested: { values: [4, 5] } } }) +
      close(0) +
      end('end_turn', { output_tokens: 3 }),
    text: 'Hello!',
  },
  {
    source: `${SDK}compaction_response.txt`,
    from: 'messages',
    bytes:
      start() +
      open(0, { type: 'compaction', content: null, encrypted_content: null }) +
      PING +
      add(0, { type: 'compaction_delta', content: 'Earlier conversation summarized.', encrypted_content: 'Ep' }) +
      close(0) +
      text(1, 'Hello there!') +
      end('end_turn'),
    text: 'Hello there!',
  },
  {
    source: `${SDK}fallback_response.txt`,
    from: 'messages',
    bytes:
      start() +
      open(0, {
        type: 'fallback',
        from: { model: 'a' },
        to: { model: 'b' },
        trigger: { type: 'refusal', category: null },
      }) +
      close(0) +
      text(1, 'Hello there!') +
      end('end_turn'),
    text: 'Hello there!',
  },
  {
    source: `${SDK}server_tool_use_response.txt`,
    from: 'messages',
    bytes:
      start() +
      text(0, 'Let me search for that.') +
      open(1, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }) +
      json(1, '', '{"query": ', '"weather ', 'in Paris"}') +
      close(1) +
      end('end_turn'),
    text: 'Let me search for that.',
    stop: { chat: 'stop', responses: 'completed', messages: 'end_turn' },
  },
  {
    source: `${SDK}refusal_response.txt`,
    from: 'messages',
    bytes:
      start() +
      text(0) +
      end('refusal', { output_tokens: 120 }, { stop_details: { type: 'refusal', category: 'cyber' } }),
    stop: { chat: 'content_filter', responses: 'content_filter', messages: 'refusal' },
  },
  {
    source: 'ikawrakow/ik_llama.cpp#1524: fragments of a block that was not started',
    from: 'messages',
    bytes: start() + add(0, { type: 'text_delta', text: 'Hi' }) + close(0) + end('end_turn'),
    text: 'Hi',
  },
  {
    source: 'anthropics/claude-code#20222: a stream that ends behind its thinking',
    from: 'messages',
    bytes:
      start() +
      open(0, { type: 'thinking', thinking: '', signature: '' }) +
      add(0, { type: 'thinking_delta', thinking: 'Something failed.' }),
    error: { status: 502 },
  },
  {
    source: `${CODEX}ev_function_call`,
    from: 'responses',
    bytes:
      item({ type: 'function_call', call_id: 'call-1', name: 'shell', arguments: '{"command":["ls"]}' }) + COMPLETED,
    calls: [{ name: 'shell', arguments: '{"command":["ls"]}' }],
    stop: { chat: 'tool_calls', responses: 'completed', messages: 'tool_use' },
  },
  {
    source: `${CODEX}ev_reasoning_item`,
    from: 'responses',
    bytes:
      item({
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'Think.' }],
        encrypted_content: 'x',
      }) +
      item({ type: 'message', role: 'assistant', id: 'm', content: [{ type: 'output_text', text: 'Hi' }] }) +
      COMPLETED,
    reasoning: 'Think.',
    text: 'Hi',
  },
  {
    source: `${CODEX}sse_failed: server_is_overloaded`,
    from: 'responses',
    bytes: event('response.failed', {
      response: { id: 'resp1', status: 'failed', error: { code: 'server_is_overloaded', message: 'Overloaded.' } },
    }),
    error: { status: 503 },
  },
];
