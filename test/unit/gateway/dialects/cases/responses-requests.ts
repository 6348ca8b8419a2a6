import type { RequestCase } from './request-case.ts';

const OLLAMA_RESPONSES = 'ollama/ollama openai/responses_test.go ';
const LLAMA_RESPONSES = 'ggml-org/llama.cpp tools/server/tests/unit/test_compat_oai_responses.py ';

const user = (content: unknown) => ({ role: 'user', content });

function responses(source: string, input: unknown, sent: RequestCase['sent'] | string, more: object = {}): RequestCase {
  return {
    source,
    from: 'responses',
    body: { input, ...more },
    ...(typeof sent === 'string' ? { refused: sent } : { sent }),
  };
}

const say = (role: string, ...texts: string[]) => ({
  type: 'message',
  role,
  content: texts.map((value) => ({ type: role === 'assistant' ? 'output_text' : 'input_text', text: value })),
});
const call = (id: string, name: string, value = '{}') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: value,
});
const output = (id: string, value: unknown) => ({ type: 'function_call_output', call_id: id, output: value });
const CALL_PARIS = call('call_abc123', 'get_weather', '{"city":"Paris"}');

export const RESPONSES_REQUESTS: readonly RequestCase[] = [
  responses(`${OLLAMA_RESPONSES}simple string input`, 'hello', { 'messages.0': user('hello') }),
  responses(`${OLLAMA_RESPONSES}text content`, [say('user', 'hello')], { 'messages.0': user('hello') }),
  responses(
    `${OLLAMA_RESPONSES}image content`,
    [{ ...say('user'), content: [{ type: 'input_image', detail: 'auto', image_url: 'https://example.com/img.png' }] }],
    {
      'messages.0.content.0': { type: 'image_url', image_url: { url: 'https://example.com/img.png', detail: 'auto' } },
    },
  ),
  responses(`${OLLAMA_RESPONSES}multiple content items`, [say('user', 'hello', 'world')], {
    'messages.0.content.1.text': 'world',
  }),
  responses(
    `${OLLAMA_RESPONSES}unknown content type`,
    [{ ...say('user'), content: [{ type: 'unknown' }] }],
    "'unknown' is not supported",
  ),
  responses(
    `${OLLAMA_RESPONSES}array with multiple messages`,
    [say('system', 'you are helpful'), say('user', 'hello')],
    {
      'messages.0': { role: 'system', content: 'you are helpful' },
      'messages.1': user('hello'),
    },
  ),
  responses(`${OLLAMA_RESPONSES}invalid input`, 123, "'input'"),
  responses(`${OLLAMA_RESPONSES}unknown item type`, [{ type: 'unknown_type' }], "'unknown_type' are not supported"),
  responses(`${OLLAMA_RESPONSES}null item`, [null], "'input[0]'"),
  responses(`${OLLAMA_RESPONSES}message without a role`, [{ content: 'x' }], "'input[0].role'"),
  responses(`${OLLAMA_RESPONSES}content that is a number`, [{ role: 'user', content: 123 }], "'input[0].content'"),
  responses(
    `${OLLAMA_RESPONSES}function_call without arguments`,
    [{ type: 'function_call', call_id: '123', name: 'test' }],
    "'input[0].arguments'",
  ),
  responses(
    `${OLLAMA_RESPONSES}input_image without an address`,
    [{ ...say('user'), content: [{ type: 'input_image', detail: 'auto' }] }],
    'Uploaded files are not available',
  ),
  responses(`${OLLAMA_RESPONSES}with temperature`, 'hello', { temperature: 0.5 }, { temperature: 0.5 }),
  responses(
    `${OLLAMA_RESPONSES}Tools`,
    'hello',
    {
      'tools.0.function.name': 'shell',
      'tools.0.function.description': 'Runs a shell command',
      'tools.0.function.strict': false,
      'tools.0.function.parameters.required': ['command'],
    },
    {
      tools: [
        {
          type: 'function',
          name: 'shell',
          description: 'Runs a shell command',
          strict: false,
          parameters: { type: 'object', properties: { command: { type: 'array' } }, required: ['command'] },
        },
      ],
    },
  ),
  responses(
    `${OLLAMA_RESPONSES}FunctionCallOutput`,
    [say('user', 'weather?'), CALL_PARIS, output('call_abc123', 'sunny, 72F')],
    {
      'messages.1.tool_calls.0.id': 'call_abc123',
      'messages.1.tool_calls.0.function.arguments': '{"city":"Paris"}',
      'messages.2': { role: 'tool', tool_call_id: 'call_abc123', content: 'sunny, 72F' },
    },
  ),
  responses(
    `${OLLAMA_RESPONSES}function call merges with preceding assistant message`,
    [say('user', 'weather?'), say('assistant', "I'll check."), CALL_PARIS],
    {
      'messages.1.content': "I'll check.",
      'messages.1.tool_calls.0.function.name': 'get_weather',
      'messages.2': undefined,
    },
  ),
  responses(`${OLLAMA_RESPONSES}function call without preceding assistant`, [say('user', 'weather?'), CALL_PARIS], {
    'messages.1.content': null,
    'messages.1.tool_calls.0.id': 'call_abc123',
  }),
  responses(
    `${OLLAMA_RESPONSES}multiple function calls merge`,
    [say('user', 'both'), say('assistant', 'Both.'), call('call_1', 'get_weather'), call('call_2', 'get_time')],
    {
      'messages.1.content': 'Both.',
      'messages.1.tool_calls.0.function.name': 'get_weather',
      'messages.1.tool_calls.1.function.name': 'get_time',
      'messages.2': undefined,
    },
  ),
  responses(
    `${OLLAMA_RESPONSES}function call merges with assistant that has thinking`,
    [
      say('user', 'think'),
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Let me think' }] },
      say('assistant', 'I thought.'),
      call('call_1', 'do_thing'),
    ],
    {
      'messages.1.reasoning': 'Let me think',
      'messages.1.content': 'I thought.',
      'messages.1.tool_calls.0.function.name': 'do_thing',
    },
  ),
  responses(
    `${OLLAMA_RESPONSES}assistant with empty content`,
    [say('user', 'x'), { type: 'message', role: 'assistant', content: '' }, call('call_1', 'act')],
    { 'messages.1.tool_calls.0.function.name': 'act' },
  ),
  responses(
    `${OLLAMA_RESPONSES}Images`,
    [
      {
        ...say('user'),
        content: [
          { type: 'input_text', text: 'What?' },
          { type: 'input_image', image_url: 'data:image/png;base64,iVBO' },
        ],
      },
    ],
    {
      'messages.0.content.1.image_url.url': 'data:image/png;base64,iVBO',
    },
  ),
  responses(
    `${LLAMA_RESPONSES}json_schema`,
    'Write an example',
    { 'response_format.json_schema.schema': { const: 'foooooo' } },
    { text: { format: { type: 'json_schema', name: 'test', schema: { const: 'foooooo' } } } },
  ),
  responses(
    `${LLAMA_RESPONSES}json_object`,
    'Write an example',
    { response_format: { type: 'json_object' } },
    { text: { format: { type: 'json_object' } } },
  ),
  responses(
    `${LLAMA_RESPONSES}text`,
    'Write an example',
    { response_format: undefined },
    { text: { format: { type: 'text' } } },
  ),
  responses(
    `${LLAMA_RESPONSES}with_openai_library`,
    [
      { role: 'system', content: 'Book' },
      { role: 'user', content: 'What is the best book' },
    ],
    {
      'messages.0': { role: 'system', content: 'Book' },
      max_tokens: 8,
      temperature: 0.8,
    },
    { max_output_tokens: 8, temperature: 0.8 },
  ),
];
