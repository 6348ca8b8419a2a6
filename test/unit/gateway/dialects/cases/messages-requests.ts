import type { RequestCase } from './request-case.ts';

const OLLAMA = 'ollama/ollama anthropic/anthropic_test.go ';
const LLAMA = 'ggml-org/llama.cpp tools/server/tests/unit/test_compat_anthropic.py ';
const VLLM = 'vllm-project/vllm tests/entrypoints/anthropic/test_anthropic_messages_conversion.py ';

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (...content: object[]) => ({ role: 'assistant', content });
const text = (value: string) => ({ type: 'text', text: value });
const use = (id: string, name: string, input: object) => ({ type: 'tool_use', id, name, input });
const result = (id: string, content: unknown, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
});
const thinking = (value: string, signature = 'sig') => ({ type: 'thinking', thinking: value, signature });
const png = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } });
const HELLO = [user('Hello')];
const WEATHER = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };

function messages(
  source: string,
  list: readonly unknown[],
  sent: RequestCase['sent'] | string,
  more: object = {},
): RequestCase {
  const body = { max_tokens: 64, messages: list, ...more };
  return { source, from: 'messages', body, ...(typeof sent === 'string' ? { refused: sent } : { sent }) };
}

/** A call, and the result that the client gives. */
function readFile(content: unknown): unknown[] {
  return [assistant(use('call_001', 'read_file', { path: '/tmp/img.png' })), user([result('call_001', content)])];
}

export const MESSAGES_REQUESTS: readonly RequestCase[] = [
  messages(`${OLLAMA}FromMessagesRequest_Basic`, HELLO, {
    'messages.0': user('Hello'),
    max_tokens: 64,
    'messages.1': undefined,
  }),
  messages(
    `${OLLAMA}WithSystemPrompt`,
    HELLO,
    { 'messages.0': { role: 'system', content: 'You are a helpful assistant.' } },
    { system: 'You are a helpful assistant.' },
  ),
  messages(
    `${OLLAMA}WithSystemPromptArray`,
    HELLO,
    { 'messages.0.content': 'You are helpful.\n\n Be concise.' },
    { system: [text('You are helpful.'), text(' Be concise.')] },
  ),
  messages(`${OLLAMA}WithOptions: temperature`, HELLO, { temperature: 0.7 }, { temperature: 0.7 }),
  messages(`${OLLAMA}WithOptions: top_p`, HELLO, { top_p: 0.9 }, { top_p: 0.9 }),
  messages(`${OLLAMA}WithOptions: top_k`, HELLO, { top_k: 40 }, { top_k: 40 }),
  messages(`${OLLAMA}WithOptions: stop_sequences`, HELLO, { stop: ['\n', 'END'] }, { stop_sequences: ['\n', 'END'] }),
  messages(`${OLLAMA}WithImage`, [user([text("What's in this image?"), png('iVBORw0K')])], {
    'messages.0.content.0.text': "What's in this image?",
    'messages.0.content.1.image_url.url': 'data:image/png;base64,iVBORw0K',
  }),
  messages(
    `${OLLAMA}WithToolUse`,
    [user('Weather in Paris?'), assistant(use('call_123', 'get_weather', { location: 'Paris' }))],
    {
      'messages.1.tool_calls.0.id': 'call_123',
      'messages.1.tool_calls.0.function': { name: 'get_weather', arguments: '{"location":"Paris"}' },
      'messages.1.content': null,
    },
  ),
  messages(`${OLLAMA}WithToolResult`, [user([result('call_123', 'Sunny, 22°C')])], {
    'messages.0': { role: 'tool', tool_call_id: 'call_123', content: 'Sunny, 22°C' },
    'messages.1': undefined,
  }),
  messages(
    `${OLLAMA}WithTools`,
    HELLO,
    {
      'tools.0.type': 'function',
      'tools.0.function.name': 'get_weather',
      'tools.0.function.description': 'Get current weather',
      'tools.0.function.parameters': WEATHER,
    },
    { tools: [{ name: 'get_weather', description: 'Get current weather', input_schema: WEATHER }] },
  ),
  messages(
    `${OLLAMA}WithThinking`,
    HELLO,
    { 'chat_template_kwargs.enable_thinking': true },
    { thinking: { type: 'enabled', budget_tokens: 1000 } },
  ),
  messages(`${OLLAMA}ThinkingOnlyBlock`, [user('Hello'), assistant({ type: 'thinking', thinking: 'Let me think' })], {
    'messages.1.reasoning': 'Let me think',
  }),
  messages(
    `${OLLAMA}ToolUseMissingID`,
    [assistant({ type: 'tool_use', name: 'get_weather' })],
    "'messages.0.content.0.id'",
  ),
  messages(
    `${OLLAMA}ToolUseMissingName`,
    [assistant({ type: 'tool_use', id: 'call_123' })],
    "'messages.0.content.0.name'",
  ),
  messages(`${OLLAMA}InvalidToolSchema`, HELLO, "'tools.0.input_schema'", {
    tools: [{ name: 'bad_tool', input_schema: '{invalid json' }],
  }),

  messages(`${LLAMA}messages_multipart_content`, [user([text('What is'), text(' the answer?')])], {
    'messages.0.content.0.text': 'What is',
    'messages.0.content.1.text': ' the answer?',
  }),
  messages(
    `${LLAMA}messages_conversation`,
    [user('Hello'), { role: 'assistant', content: 'Hi there!' }, user('How are you?')],
    {
      'messages.1': { role: 'assistant', content: 'Hi there!' },
      'messages.2': user('How are you?'),
    },
  ),
  messages(
    `${LLAMA}messages_streaming`,
    [user('Say hello')],
    { stream: true, 'stream_options.include_usage': true },
    { stream: true },
  ),
  messages(
    `${LLAMA}tool_result_with_text`,
    [
      user('Weather?'),
      assistant(use('tool_1', 'get_weather', { location: 'Paris' })),
      user([text('Here are the results:'), result('tool_1', 'Sunny, 25°C')]),
    ],
    {
      'messages.2': { role: 'tool', tool_call_id: 'tool_1', content: 'Sunny, 25°C' },
      'messages.3': user('Here are the results:'),
    },
  ),
  messages(
    `${LLAMA}tool_result_error`,
    [
      user('Weather'),
      assistant(use('t', 'get_weather', { location: 'X' })),
      user([result('t', 'City not found', { is_error: true })]),
    ],
    {
      'messages.2.content': 'Error: City not found',
    },
  ),
  messages(`${LLAMA}vision_format_accepted`, [user([png('iVBORw0K'), text('What is this?')])], {
    'messages.0.content.0.type': 'image_url',
    'messages.0.content.1': text('What is this?'),
  }),
  messages(
    `${LLAMA}thinking`,
    [user('What is 2+2?')],
    { 'chat_template_kwargs.thinking': true },
    { thinking: { type: 'enabled', budget_tokens: 50 } },
  ),
  messages(
    `${LLAMA}metadata`,
    HELLO,
    { metadata: undefined, user: undefined },
    { metadata: { user_id: 'test_user_123' } },
  ),
  messages(`${LLAMA}missing_messages`, HELLO, 'expected an array', { messages: undefined }),
  messages(`${LLAMA}empty_messages`, [], 'expected some content'),

  messages(
    `${VLLM}base64_image_in_user_message`,
    [user([text('Describe'), { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'iVBO' } }])],
    {
      'messages.0.content.1': { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,iVBO' } },
    },
  ),
  messages(
    `${VLLM}url_image_in_user_message`,
    [user([{ type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } }])],
    {
      'messages.0.content.0.image_url.url': 'https://example.com/cat.png',
    },
  ),
  messages(`${VLLM}url_source_missing_url`, [user([{ type: 'image', source: { type: 'url' } }])], 'source.url'),
  messages(
    `${VLLM}missing_type`,
    [user([{ type: 'image', source: { media_type: 'image/webp', data: 'UklGR' } }])],
    'Send images as base64 or url',
  ),
  messages(
    `${VLLM}missing_media_type`,
    [user([{ type: 'image', source: { type: 'base64', data: 'abc' } }])],
    'source.media_type',
  ),
  messages(`${VLLM}tool_result_string_content`, readFile('file contents here'), {
    'messages.1.content': 'file contents here',
  }),
  messages(`${VLLM}tool_result_text_blocks`, readFile([text('line 1'), text('line 2')]), {
    'messages.1.content': 'line 1\n\nline 2',
  }),
  messages(`${VLLM}tool_result_with_image`, readFile([png('AAAA')]), {
    'messages.1.content': '',
    'messages.2.role': 'user',
    'messages.2.content.1.image_url.url': 'data:image/png;base64,AAAA',
  }),
  messages(`${VLLM}tool_result_with_text_and_image`, readFile([text('Here is the screenshot'), png('QUFB')]), {
    'messages.1.content': 'Here is the screenshot',
    'messages.2.content.1.image_url.url': 'data:image/png;base64,QUFB',
  }),
  messages(
    `${VLLM}tool_result_with_multiple_images`,
    readFile([png('IMG1'), { type: 'image', source: { type: 'url', url: 'https://example.com/2.jpg' } }]),
    {
      'messages.2.content.1.image_url.url': 'data:image/png;base64,IMG1',
      'messages.2.content.2.image_url.url': 'https://example.com/2.jpg',
    },
  ),
  messages(`${VLLM}tool_result_none_content`, readFile(null), {
    'messages.1': { role: 'tool', tool_call_id: 'call_001', content: '' },
  }),
  messages(`${VLLM}tool_result_no_follow_up_when_no_images`, readFile([text('just text')]), {
    'messages.2': undefined,
  }),
  messages(
    `${VLLM}billing_header_stripped_from_system`,
    HELLO,
    { 'messages.0.content': 'You are a helpful assistant.' },
    {
      system: [
        text('You are a helpful assistant.'),
        text('x-anthropic-billing-header: cc_version=2.1.37.abc; cc_entrypoint=cli;'),
      ],
    },
  ),
  messages(
    `${VLLM}inline_system_merged_with_top_level_system`,
    [
      user([
        text('<system-reminder>\n.....\n</system-reminder>\n\n'),
        { ...text('help?'), cache_control: { type: 'ephemeral' } },
      ]),
      { role: 'system', content: '.....' },
    ],
    {
      'messages.0.content': 'You are Claude Code.\n\n....',
      'messages.1.content.1': text('help?'),
      'messages.1.content.2.text': '<system>\n.....\n</system>',
      'messages.2': undefined,
    },
    {
      system: [
        text('x-anthropic-billing-header: cc_version=2.1.160.bca; cch=d1d48;'),
        { ...text('You are Claude Code.'), cache_control: { type: 'ephemeral' } },
        text('....'),
      ],
      tools: [],
    },
  ),
  messages(`${VLLM}inline_system_string_only`, [user('Hello'), { role: 'system', content: 'Be concise.' }], {
    'messages.0.content.1.text': '<system>\nBe concise.\n</system>',
  }),
  messages(
    `${VLLM}inline_system_list_content`,
    [user('Hi'), { role: 'system', content: [text('Part one. '), text('Part two.')] }],
    {
      'messages.0.content.1.text': '<system>\nPart one. \n\nPart two.\n</system>',
    },
  ),
  messages(
    `${VLLM}thinking_plus_text`,
    [user('Code.'), assistant(thinking('A simple example.'), text('Sure!')), user('Fix it?')],
    {
      'messages.1.reasoning': 'A simple example.',
      'messages.1.content': 'Sure!',
    },
  ),
  messages(`${VLLM}thinking_only`, [user('Hello'), assistant(thinking('Just thinking')), user('Go on.')], {
    'messages.1.reasoning': 'Just thinking',
  }),
  messages(
    `${VLLM}thinking_plus_tool_use`,
    [
      user('2+2?'),
      assistant(thinking('Call it.'), use('call_001', 'calculator', { expression: '2+2' })),
      user([result('call_001', '4')]),
    ],
    {
      'messages.1.reasoning': 'Call it.',
      'messages.1.tool_calls.0.function.name': 'calculator',
      'messages.1.content': null,
      'messages.2.content': '4',
    },
  ),
  messages(
    `${VLLM}multiple_thinking_blocks`,
    [user('Think.'), assistant(thinking('First.'), thinking('Second.'), text('Done.'))],
    {
      'messages.1.reasoning': 'First.\n\nSecond.',
      'messages.1.content': 'Done.',
    },
  ),
  messages(`${VLLM}no_thinking_blocks_unchanged`, [user('Hi'), { role: 'assistant', content: 'Hello!' }], {
    'messages.1': { role: 'assistant', content: 'Hello!' },
  }),
  messages(
    `${VLLM}multi_turn_with_thinking_blocks`,
    [user('1'), assistant(thinking('R1'), text('A1')), user('2'), assistant(thinking('R2'), text('A2')), user('3')],
    {
      'messages.1.reasoning': 'R1',
      'messages.3.reasoning': 'R2',
      'messages.3.content': 'A2',
    },
  ),
  messages(
    `${VLLM}redacted_thinking_block_is_accepted`,
    [
      user('Hello'),
      assistant(thinking('Thinking'), { type: 'redacted_thinking', data: 'OPAQUE' }, text('Hi!')),
      user('Continue'),
    ],
    {
      'messages.1.reasoning': 'Thinking',
      'messages.1.content': 'Hi!',
    },
  ),
];
