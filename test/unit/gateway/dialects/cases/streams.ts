import type { StreamCase } from './stream-case.ts';

const PYTHON = 'openai/openai-python tests/test_streaming.py ';
const CODEX = 'openai/codex codex-rs/codex-api/src/sse/responses.rs ';
const OLLAMA = 'ollama/ollama anthropic/anthropic_test.go StreamConverter ';
const LLAMA = 'ggml-org/llama.cpp tools/server/tests/unit/test_compat_oai_responses.py ';

const choice = (delta: object, finish: string | null = null) =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
const chunk = (delta: object, finish: string | null = null) => `data: ${choice(delta, finish)}\n\n`;
const END = `${chunk({}, 'stop')}data: [DONE]\n\n`;
const event = (type: string, fields: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const done = (text: string) =>
  event('response.output_item.done', {
    item: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] },
  });
const usage = {
  input_tokens: 0,
  input_tokens_details: null,
  output_tokens: 0,
  output_tokens_details: null,
  total_tokens: 0,
};
const completed = (response: object = {}) => event('response.completed', { response: { id: 'resp1', ...response } });
const failed = (code: string, message: string) =>
  event('response.failed', {
    sequence_number: 3,
    response: {
      id: 'r',
      object: 'response',
      status: 'failed',
      background: false,
      error: { code, message },
      usage: null,
      user: null,
      metadata: {},
    },
  });
const tool = (id: string, name: string, value: string, index = 0) => ({
  role: 'assistant',
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: value } }],
});

/** A chunk over several data lines, split before its second member. */
const split = choice({ content: 'true' }).replace(',', '\ndata: ,');

export const STREAMS: readonly StreamCase[] = [
  {
    source: `${PYTHON}test_basic`,
    from: 'chat',
    bytes: `event: completion\ndata: ${choice({ content: 'x' })}\n\n${END}`,
    text: 'x',
  },
  { source: `${PYTHON}test_data_missing_event`, from: 'chat', bytes: chunk({ content: 'x' }) + END, text: 'x' },
  {
    source: `${PYTHON}test_event_missing_data`,
    from: 'chat',
    bytes: `event: ping\n\n${chunk({ content: 'x' })}${END}`,
    text: 'x',
  },
  {
    source: `${PYTHON}test_multiple_events`,
    from: 'chat',
    bytes: `event: ping\n\nevent: completion\n\n${chunk({ content: 'x' })}${END}`,
    text: 'x',
  },
  {
    source: `${PYTHON}test_multiple_events_with_data`,
    from: 'chat',
    bytes: `event: ping\n${chunk({ content: 'a' })}event: completion\n${chunk({ content: 'b' })}${END}`,
    text: 'ab',
  },
  {
    source: `${PYTHON}test_multiple_data_lines`,
    from: 'chat',
    bytes: `event: ping\ndata: ${split}\n\n${END}`,
    text: 'true',
  },
  {
    source: `${PYTHON}test_multiple_data_lines_with_empty_line`,
    from: 'chat',
    bytes: `event: ping\ndata: ${split.replace('\ndata: ,', '\ndata: \ndata:\ndata: ,')}\n\n\n${END}`,
    text: 'true',
  },
  {
    source: `${PYTHON}test_data_json_escaped_double_new_line`,
    from: 'chat',
    bytes: chunk({ content: 'my long\n\ncontent' }) + END,
    text: 'my long\n\ncontent',
  },
  {
    source: `${PYTHON}test_special_new_line_character`,
    from: 'chat',
    bytes: [' culpa', ' \u2028', 'foo'].map((content) => chunk({ content })).join('') + END,
    text: ' culpa \u2028foo',
  },
  {
    source: `${PYTHON}test_multi_byte_character_multiple_chunks`,
    from: 'chat',
    bytes: chunk({ content: 'известни' }) + END,
    text: 'известни',
  },
  {
    source: `${PYTHON}test_transport_error_mid_stream`,
    from: 'chat',
    bytes: chunk({ content: 'x' }),
    error: { status: 502 },
  },
  {
    source: `${CODEX}parses_items_and_completed`,
    from: 'responses',
    bytes: done('Hello') + done('World') + completed(),
    text: 'HelloWorld',
  },
  { source: `${CODEX}error_when_missing_completed`, from: 'responses', bytes: done('Hello'), error: { status: 502 } },
  {
    source: `${CODEX}error_when_error_event`,
    from: 'responses',
    bytes: failed(
      'rate_limit_exceeded',
      'Rate limit reached on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528.',
    ),
    error: { status: 429 },
  },
  {
    source: `${CODEX}context_window_error_is_fatal`,
    from: 'responses',
    bytes: failed(
      'context_length_exceeded',
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
    ),
    error: { status: 400, code: 'context_length_exceeded' },
  },
  {
    source: `${CODEX}context_window_error_with_newline_is_fatal`,
    from: 'responses',
    bytes: failed(
      'context_length_exceeded',
      'Your input exceeds the context window of this model. Please adjust your input and try\nagain.',
    ),
    error: { status: 400, code: 'context_length_exceeded' },
  },
  {
    source: `${CODEX}quota_exceeded_error_is_fatal`,
    from: 'responses',
    bytes: failed('insufficient_quota', 'You exceeded your current quota.'),
    error: { code: 'insufficient_quota' },
  },
  {
    source: `${CODEX}table_driven_event_kinds: created`,
    from: 'responses',
    bytes: event('response.created', { response: {} }) + done('hi') + completed({ usage, output: [] }),
    text: 'hi',
  },
  {
    source: `${CODEX}table_driven_event_kinds: output_item.done`,
    from: 'responses',
    bytes: done('hi') + completed({ usage, output: [] }),
    text: 'hi',
  },
  {
    source: `${CODEX}table_driven_event_kinds: unknown`,
    from: 'responses',
    bytes: event('response.new_tool_event') + done('hi') + completed({ usage, output: [] }),
    text: 'hi',
  },
  {
    source: `${LLAMA}stream_with_llama_telemetry`,
    from: 'responses',
    bytes:
      event('response.created', { response: {} }) +
      event('response.in_progress', { response: {}, prompt_progress: { total: 40, cache: 0, processed: 32 } }) +
      event('response.output_text.delta', { output_index: 0, delta: 'Hi', timings: { prompt_per_second: 1 } }) +
      completed({ usage, output: [] }),
    text: 'Hi',
  },
  {
    source: `${OLLAMA}Basic`,
    from: 'chat',
    bytes:
      chunk({ role: 'assistant', content: 'Hello' }) +
      chunk({ role: 'assistant', content: ' world!' }, 'stop') +
      'data: [DONE]\n\n',
    text: 'Hello world!',
  },
  {
    source: `${OLLAMA}WithToolCalls`,
    from: 'chat',
    bytes: chunk(tool('call_123', 'get_weather', '{"location":"Paris"}'), 'stop') + 'data: [DONE]\n\n',
    calls: [{ name: 'get_weather', arguments: '{"location":"Paris"}' }],
  },
  {
    source: `${OLLAMA}ContentBlockStartIncludesEmptyFields: thinking`,
    from: 'chat',
    bytes: chunk({ role: 'assistant', reasoning: 'let me think' }) + chunk({ content: 'hello' }) + END,
    reasoning: 'let me think',
    text: 'hello',
  },
];
