/** Streams of chat servers that broke clients and gateways, from their threads and the tests that came of them. */
import type { StreamCase } from './stream-case.ts';

const LITELLM = 'BerriAI/litellm tests/test_litellm/llms/anthropic/experimental_pass_through/';
const VERCEL = 'vercel/ai packages/openai-compatible/src/chat/';
const TGI = 'huggingface/text-generation-inference integration-tests/models/__snapshots__/test_tools_llama/';

const DONE = 'data: [DONE]\n\n';

function chunk(choice: object | undefined, more: object = {}): string {
  const choices = choice === undefined ? [] : [{ index: 0, finish_reason: null, ...choice }];
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
  return `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
}
const delta = (fields: object, finish: string | null = null, more: object = {}) =>
  chunk({ delta: fields, finish_reason: finish }, more);
const call = (fields: object) => delta({ tool_calls: [fields] });
const END = delta({}, 'stop') + DONE;
const CALLED = delta({}, 'tool_calls') + DONE;

/** TGI sends one call as an object, and its last token as part of the arguments. */
const tgi = (text: string, name: string | null, finish: string | null = null) =>
  delta(
    { role: 'assistant', tool_calls: { index: 0, id: '', type: 'function', function: { arguments: text, name } } },
    finish,
    { usage: null },
  );
const begin = (name: string, more: object = {}) =>
  call({ index: 0, id: 'call_1', type: 'function', function: { name, arguments: '' }, ...more });
const more = (text: string, index = 0) => call({ index, function: { arguments: text } });

export const ENGINE_STREAMS: readonly StreamCase[] = [
  {
    source: `${TGI}sea_creatures_stream_function_object`,
    from: 'chat',
    bytes:
      tgi('', 'get_weather') +
      tgi('{"location":', null) +
      tgi('"Paris"}', null) +
      tgi('<|eot_id|>', null, 'stop') +
      DONE,
    calls: [{ name: 'get_weather', arguments: '{"location":"Paris"}' }],
  },
  {
    source: 'nearai/ironclaw#5951: a stray token behind the arguments',
    from: 'chat',
    bytes: begin('memory_read') + more('{"path":"a.md"}') + more('<｜tool▁call▁end｜>') + CALLED,
    calls: [{ name: 'memory_read', arguments: '{"path":"a.md"}' }],
  },
  {
    source: 'vllm-project/vllm#51701: the wrapper of a call and its last token, in pieces',
    from: 'chat',
    bytes: begin('memory') + more('{"action":"create","id":"preferences"}}') + more('</s') + more('>') + CALLED,
    calls: [{ name: 'memory', arguments: '{"action":"create","id":"preferences"}' }],
  },
  {
    source: 'openai/codex#7517: fragments without index and id',
    from: 'chat',
    bytes:
      call({ id: '701601222', type: 'function', function: { name: 'shell', arguments: '' } }) +
      ['{\n', ' "', 'command', '": "ls"}'].map((text) => call({ function: { arguments: text } })).join('') +
      CALLED,
    calls: [{ name: 'shell', arguments: '{\n "command": "ls"}' }],
  },
  {
    source: 'openai/codex#7517: fragments with an id each',
    from: 'chat',
    bytes:
      begin('shell') +
      ['{"a"', ':1}']
        .map((text, at) => call({ index: 0, id: `tool-call-${at}`, function: { name: '', arguments: text } }))
        .join('') +
      CALLED,
    calls: [{ name: 'shell', arguments: '{"a":1}' }],
  },
  {
    source: `${LITELLM}messages/test_content_after_stop_reason.py`,
    from: 'chat',
    bytes:
      delta({ content: 'Hello' }) +
      delta({ content: ' world' }) +
      delta({ content: '' }, 'stop', { usage: { prompt_tokens: 230, completion_tokens: 65, total_tokens: 295 } }) +
      delta({ content: ' Additional content' }) +
      DONE,
    text: 'Hello world Additional content',
  },
  {
    source: `${LITELLM}adapters/test_streaming_iterator_combined_chunk.py fake_stream_content`,
    from: 'chat',
    bytes: delta({ role: 'assistant', content: 'Hello, the answer is 2.' }, 'stop') + DONE,
    text: 'Hello, the answer is 2.',
  },
  {
    source: `${LITELLM}adapters/test_streaming_iterator_combined_chunk.py boundary_reasoning_content_chunk`,
    from: 'chat',
    bytes:
      delta({ reasoning_content: 'Let me think.' }) + delta({ reasoning_content: '\n', content: 'Hi there!' }) + END,
    reasoning: 'Let me think.\n',
    text: 'Hi there!',
  },
  {
    source: `${LITELLM}adapters/test_streaming_iterator_combined_chunk.py split_separates_reasoning_content_and_finish`,
    from: 'chat',
    bytes: delta({ content: 'hi', tool_calls: null, reasoning_content: 'some reasoning' }, 'stop') + DONE,
    reasoning: 'some reasoning',
    text: 'hi',
  },
  {
    source: `${LITELLM}adapters/test_streaming_iterator_tool_args.py bundled_tool_args`,
    from: 'chat',
    bytes:
      delta({ content: 'Hello', role: 'assistant', tool_calls: null }) +
      delta({
        content: null,
        role: 'assistant',
        tool_calls: [
          {
            index: 0,
            id: 'call_abc123',
            type: 'function',
            function: { name: 'get_weather', arguments: '{"location": "Boston"}' },
          },
        ],
      }) +
      delta({ content: null, role: 'assistant', tool_calls: null }, 'tool_calls') +
      DONE,
    text: 'Hello',
    calls: [{ name: 'get_weather', arguments: '{"location": "Boston"}' }],
    stop: { chat: 'tool_calls', responses: 'completed', messages: 'tool_use' },
  },
  {
    source: `${LITELLM}adapters/test_streaming_iterator_tool_args.py no_extra_delta_when_tool_args_empty`,
    from: 'chat',
    bytes:
      delta({ content: 'Hi', role: 'assistant', tool_calls: null }) +
      begin('get_weather') +
      call({ index: 0, id: null, type: 'function', function: { name: null, arguments: '{"location": "NYC"}' } }) +
      delta({ content: null, role: 'assistant', tool_calls: null }, 'tool_calls') +
      DONE,
    text: 'Hi',
    calls: [{ name: 'get_weather', arguments: '{"location": "NYC"}' }],
  },
  {
    source: `${LITELLM}adapters/test_streaming_iterator_empty_choices.py (litellm#30761)`,
    from: 'chat',
    bytes: chunk(undefined) + delta({ content: 'Hi' }) + chunk(undefined, { usage: null }) + END,
    text: 'Hi',
  },
  {
    source: `${VERCEL}__fixtures__/placeholder-first-chunk.chunks.txt`,
    from: 'chat',
    bytes:
      'data: {"choices":[],"created":0,"id":"","model":"","object":""}\n\n' +
      delta({ content: 'Hello', role: 'assistant' }) +
      delta({}, 'stop') +
      chunk(undefined, { usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 } }) +
      DONE,
    text: 'Hello',
  },
  {
    source: `${VERCEL}__fixtures__/issue-20203-empty-tool-calls.chunks.txt`,
    from: 'chat',
    bytes:
      delta({ role: 'assistant', content: '', reasoning_content: 'Think ', tool_calls: [] }) +
      delta({ content: '', reasoning_content: 'more...', tool_calls: [] }) +
      delta({ content: 'Hello', reasoning_content: '', tool_calls: [] }, 'stop') +
      DONE,
    reasoning: 'Think more...',
    text: 'Hello',
    stop: { chat: 'stop', responses: 'completed', messages: 'end_turn' },
  },
  {
    source: `${VERCEL}__fixtures__/anthropic-fallback-tool-call.sse`,
    from: 'chat',
    bytes:
      delta({ role: 'assistant' }) +
      delta({ content: 'Reading' }) +
      delta({ content: ' it.' }) +
      begin('read_file', { index: 1, id: 'toolu_sanitized' }) +
      ['', '{"pa', 'th": "a.txt"}'].map((text) => more(text, 1)).join('') +
      CALLED,
    text: 'Reading it.',
    calls: [{ name: 'read_file', arguments: '{"path": "a.txt"}' }],
  },
  {
    source: `${VERCEL}__fixtures__/issue-15789-step-1.chunks.txt`,
    from: 'chat',
    bytes:
      delta({ role: 'assistant', content: '', refusal: null }, null, { obfuscation: 'dOvUml6hFbj' }) +
      delta({ content: 'PRE_TOOL' }, null, { obfuscation: 'kxfWAnRUqJ' }) +
      begin('weather') +
      more('{}') +
      delta({}, 'tool_calls', { obfuscation: 'c' }) +
      chunk(undefined, { usage: { prompt_tokens: 58, completion_tokens: 12, total_tokens: 70 }, obfuscation: 'C2' }) +
      DONE,
    text: 'PRE_TOOL',
    calls: [{ name: 'weather', arguments: '{}' }],
  },
  {
    source: `${VERCEL}__fixtures__/issue-13703-mistral-thinking.chunks.txt`,
    from: 'chat',
    bytes:
      delta({ role: 'assistant', content: '' }) +
      delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Okay, the' }], closed: true }] }) +
      delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: ' user' }] }] }) +
      delta({
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: '.' }], closed: true },
          { type: 'text', text: '3' },
        ],
      }) +
      delta({ content: '91' }, 'stop', { p: 'abcdef' }) +
      DONE,
    reasoning: 'Okay, the user.',
    text: '391',
  },
  {
    source: `${VERCEL}openai-compatible-chat-language-model.test.ts empty tool call that is sent in one chunk`,
    from: 'chat',
    bytes: delta({ role: 'assistant', content: null }) + begin('test-tool') + CALLED,
    calls: [{ name: 'test-tool' }],
  },
  {
    source: `${VERCEL}openai-compatible-chat-language-model.test.ts thought signatures in streamed tool calls`,
    from: 'chat',
    bytes:
      call({
        index: 0,
        id: 'call-1',
        type: 'function',
        function: { name: 'test_tool', arguments: '{"a":1}' },
        extra_content: { google: { thought_signature: '<Sig>' } },
      }) + CALLED,
    calls: [{ name: 'test_tool', arguments: '{"a":1}' }],
  },
  {
    source: `${VERCEL}openai-compatible-chat-language-model.test.ts error stream parts`,
    from: 'chat',
    bytes: `data: {"error": {"message": "Incorrect API key provided.", "code": "Client specified an invalid argument"}}\n\n${DONE}`,
    error: { status: 400 },
  },
  {
    source: `${VERCEL}__fixtures__/xai-tool-call.chunks.txt`,
    from: 'chat',
    bytes:
      'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"First","role":"assistant"}}],"system_fingerprint":"fp"}\n\n' +
      begin('weather') +
      more('{"location":"San Francisco"}') +
      CALLED,
    reasoning: 'First',
    calls: [{ name: 'weather', arguments: '{"location":"San Francisco"}' }],
  },
  {
    source: 'docs of OpenRouter, "Errors": a failure in the middle of a stream',
    from: 'chat',
    bytes:
      delta({ role: 'assistant', content: 'He' }) +
      `data: {"error":{"code":502,"message":"Provider disconnected unexpectedly"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}\n\n`,
    error: { status: 502 },
  },
];
