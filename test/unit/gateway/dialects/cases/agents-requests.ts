/** Requests of agents that engines and gateways refused or lost, from their threads and the tests that came of them. */
import type { RequestCase } from './request-case.ts';

const SGLANG = 'sgl-project/sglang test/registered/openai_server/basic/test_anthropic_4_7_compat.py ';
const LITELLM = 'BerriAI/litellm tests/test_litellm/llms/anthropic/experimental_pass_through/messages/';

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (...content: object[]) => ({ role: 'assistant', content });
const text = (value: string) => ({ type: 'text', text: value });
const use = (id: string, name: string, input: object = {}) => ({ type: 'tool_use', id, name, input });
const result = (id: string, content: unknown) => ({ type: 'tool_result', tool_use_id: id, content });
const HI = [user('hi')];
const SCHEMA = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };

function messages(source: string, list: readonly unknown[], sent: RequestCase['sent'] | string, more: object = {}) {
  const body = { max_tokens: 16, messages: list, ...more };
  return { source, from: 'messages', body, ...(typeof sent === 'string' ? { refused: sent } : { sent }) } as const;
}

function responses(source: string, input: unknown, sent: RequestCase['sent'] | string, more: object = {}) {
  const body = { input, ...more };
  return { source, from: 'responses', body, ...(typeof sent === 'string' ? { refused: sent } : { sent }) } as const;
}

export const AGENTS_REQUESTS: readonly RequestCase[] = [
  messages(
    `${SGLANG}adaptive_thinking_field`,
    HI,
    { 'chat_template_kwargs.enable_thinking': true, thinking: undefined },
    { thinking: { type: 'adaptive', display: 'summarized' } },
  ),
  messages(
    `${SGLANG}output_config_field`,
    HI,
    { reasoning_effort: 'high', output_config: undefined },
    { output_config: { effort: 'xhigh', task_budget: { type: 'tokens', total: 40_000 } } },
  ),
  messages(`${SGLANG}betas_service_tier_mcp_container: the servers`, HI, 'does not connect to MCP servers', {
    mcp_servers: [{ type: 'url', url: 'https://example.com/mcp' }],
  }),
  messages(
    `${SGLANG}betas_service_tier_mcp_container: the rest`,
    HI,
    { betas: undefined, service_tier: undefined, container: undefined, 'messages.0': user('hi') },
    { betas: ['task-budgets-2026-03-13'], service_tier: 'standard_only', container: { id: 'c_123' } },
  ),
  messages(
    `${SGLANG}unknown_top_level_field_is_ignored`,
    HI,
    { some_future_field: undefined },
    { some_future_field: { foo: 'bar' } },
  ),
  messages(
    `${SGLANG}thinking_block_in_assistant_history_does_not_raise`,
    [
      user('Hello'),
      assistant({ type: 'thinking', thinking: 'let me think...', signature: 'sig' }, text('Hi!')),
      user('Continue.'),
    ],
    { 'messages.1.content': 'Hi!', 'messages.1.reasoning': 'let me think...' },
  ),
  messages(
    `${SGLANG}server_tool_use_block_does_not_raise`,
    [
      user('search for x'),
      assistant(
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [text('result body')] },
        text('Done.'),
      ),
      user('Thanks.'),
    ],
    {
      'messages.1.tool_calls.0.function': { name: 'web_search', arguments: '{"query":"x"}' },
      'messages.2': { role: 'tool', tool_call_id: 'srvtoolu_1', content: 'result body' },
      'messages.3.content': 'Done.',
    },
  ),
  messages(
    `${SGLANG}mcp_tool_use_and_result`,
    [
      user('read'),
      assistant(
        { type: 'mcp_tool_use', id: 'mcptool_1', name: 'fs.read', input: { path: '/tmp/x' }, server_name: 'fs' },
        { type: 'mcp_tool_result', tool_use_id: 'mcptool_1', content: [text('ok')] },
      ),
      user('Thanks.'),
    ],
    { 'messages.1.tool_calls.0.function.name': 'fs.read', 'messages.2.content': 'ok' },
  ),
  messages(
    `${SGLANG}container_upload_block`,
    [user([{ type: 'container_upload', file_id: 'file_1' }, text('hi')])],
    "'container_upload' is not supported",
  ),
  messages(
    'sgl-project/sglang test/registered/openai_server/basic/test_anthropic_server.py tool_result_image_content_conversion',
    [
      user('What color is it?'),
      assistant(use('call_123', 'read_file', { file_path: '/test.png' })),
      user([
        result('call_123', [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'abcd' } }]),
      ]),
    ],
    {
      'messages.2': { role: 'tool', tool_call_id: 'call_123', content: '' },
      'messages.3.content.1.image_url.url': 'data:image/png;base64,abcd',
    },
  ),
  messages(
    'anthropics/claude-code#77928, BerriAI/litellm#36540: tools that were searched for',
    [
      user('fetch'),
      assistant(use('toolu_1', 'ToolSearch')),
      user([result('toolu_1', [{ type: 'tool_reference', tool_name: 'WebFetch' }])]),
    ],
    {
      'messages.2': { role: 'tool', tool_call_id: 'toolu_1', content: 'Tool: WebFetch' },
      'tools.0.function.name': 'WebFetch',
      'tools.0.function.defer_loading': undefined,
      'tools.0.defer_loading': undefined,
    },
    { tools: [{ name: 'WebFetch', description: 'x', input_schema: SCHEMA, defer_loading: true }] },
  ),
  messages(
    'anthropics/claude-code#21595: context management',
    HI,
    { context_management: undefined },
    { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } },
  ),
  messages(
    'sgl-project/sglang#28792: a system message after the first turn',
    [user('1'), { role: 'assistant', content: 'A' }, { role: 'system', content: 'Be brief.' }, user('2')],
    { 'messages.0': user('1'), 'messages.2.content.0.text': /Be brief/, 'messages.3': undefined },
  ),
  messages(
    `${LITELLM}test_mid_conversation_system.py moves_system_after_tool_result`,
    [
      user('weather?'),
      assistant(use('toolu_1', 'get_weather')),
      { role: 'system', content: 'Use the corrected result.' },
      user([result('toolu_1', 'Rainy')]),
    ],
    { 'messages.1.tool_calls.0.id': 'toolu_1', 'messages.2.role': 'tool', 'messages.2.tool_call_id': 'toolu_1' },
  ),
  messages(
    `${LITELLM}test_v1_messages_empty_text_sanitization.py empty_text_block_stripped_alongside_tool_use (litellm#22930)`,
    [
      user('w'),
      assistant(text(''), use('toolu_123', 'get_weather', { location: 'NYC' })),
      user([result('toolu_123', 'x')]),
    ],
    { 'messages.1.content': null, 'messages.1.tool_calls.0.function.name': 'get_weather' },
  ),
  messages(
    `${LITELLM}test_v1_messages_empty_text_sanitization.py tool_result_blocks_untouched`,
    [user('w'), assistant(use('toolu_123', 'f')), user([result('toolu_123', 'result data')])],
    { 'messages.2': { role: 'tool', tool_call_id: 'toolu_123', content: 'result data' }, 'messages.3': undefined },
  ),
  messages(
    `${LITELLM}test_strip_schema_from_tools.py`,
    HI,
    { 'tools.0.function.parameters.required': ['path'], 'tools.0.function.strict': false },
    {
      tools: [
        {
          type: 'custom',
          name: 'read',
          input_schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...SCHEMA },
        },
      ],
    },
  ),
  messages(
    `${LITELLM}test_parallel_tool_calls.py`,
    HI,
    { parallel_tool_calls: false, tool_choice: 'required' },
    { tools: [{ name: 'f', input_schema: SCHEMA }], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
  ),
  messages(
    '1rgs/claude-code-proxy#86: several results of one turn',
    [
      user('go'),
      assistant(use('a', 'f'), use('b', 'g')),
      user([result('b', 'two'), result('a', 'one'), text('and now?')]),
    ],
    {
      'messages.2': { role: 'tool', tool_call_id: 'b', content: 'two' },
      'messages.3': { role: 'tool', tool_call_id: 'a', content: 'one' },
      'messages.4': user('and now?'),
    },
  ),

  responses(
    'openai/codex#10635, ggml-org/llama.cpp: a hosted tool beside functions',
    'hi',
    "'code_interpreter' runs at OpenAI",
    { tools: [{ type: 'function', name: 'f', parameters: SCHEMA }, { type: 'code_interpreter' }] },
  ),
  responses(
    'sgl-project/sglang test/registered/openai_server/function_call/test_responses_function_calling.py tool_choice_none',
    'hi',
    { tool_choice: 'none', 'tools.0.function.name': 'get_weather' },
    { tools: [{ type: 'function', name: 'get_weather', parameters: SCHEMA }], tool_choice: 'none' },
  ),
  responses(
    'sgl-project/sglang test/registered/openai_server/function_call/test_responses_function_calling.py function_tool_with_strict_mode',
    'hi',
    { 'tools.0.function.strict': true },
    { tools: [{ type: 'function', name: 'calculate', parameters: SCHEMA, strict: true }] },
  ),
  responses(
    'ggml-org/llama.cpp tools/server/tests/unit/test_compat_oai_responses.py responses_with_text_format: json_schema',
    'Write an example',
    {
      'response_format.type': 'json_schema',
      'response_format.json_schema.schema': { const: 'foooooo' },
      max_tokens: 10,
    },
    { max_output_tokens: 10, text: { format: { type: 'json_schema', name: 'test', schema: { const: 'foooooo' } } } },
  ),
  responses(
    'ggml-org/llama.cpp tools/server/tests/unit/test_compat_oai_responses.py responses_with_text_format: text',
    'Write an example',
    { response_format: undefined },
    { text: { format: { type: 'text' } } },
  ),
  responses(
    'ggml-org/llama.cpp tools/server/tests/unit/test_compat_oai_responses.py responses_with_openai_library',
    [
      { role: 'system', content: 'Book' },
      { role: 'user', content: 'What is the best book' },
    ],
    {
      'messages.0': { role: 'system', content: 'Book' },
      'messages.1': user('What is the best book'),
      temperature: 0.8,
    },
    { max_output_tokens: 8, temperature: 0.8 },
  ),
];
