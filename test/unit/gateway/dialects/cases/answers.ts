/** Whole answers of engines that speak chat, and what a client of the messages dialect must read. */
export interface AnswerCase {
  source: string;
  message: Record<string, unknown>;
  finish: string;
  usage?: Record<string, unknown>;
  /** Values in the answer for the client, by their path. */
  read: Readonly<Record<string, unknown>>;
}

const OLLAMA = 'ollama/ollama anthropic/anthropic_test.go ';
const VLLM = 'vllm-project/vllm tests/entrypoints/anthropic/test_anthropic_messages_conversion.py ';
const LLAMA = 'ggml-org/llama.cpp tools/server/tests/unit/test_compat_anthropic.py ';

const calls = [
  { id: 'call_123', type: 'function', function: { name: 'get_weather', arguments: '{"location":"Paris"}' } },
];
const TGI = 'huggingface/text-generation-inference integration-tests/models/__snapshots__/test_tools_llama/';

const counts = (cached?: number, written?: number) => ({
  prompt_tokens: 100,
  completion_tokens: 10,
  ...(cached !== undefined && { prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written } }),
});
const used = (input: number, read: number, written: number) => ({
  'usage.input_tokens': input,
  'usage.cache_read_input_tokens': read,
  'usage.cache_creation_input_tokens': written,
  'usage.output_tokens': 10,
});

export const ANSWERS: readonly AnswerCase[] = [
  {
    source: `${OLLAMA}ToMessagesResponse_Basic`,
    message: { content: 'Hello there!' },
    finish: 'stop',
    usage: { prompt_tokens: 10, completion_tokens: 5 },
    read: {
      type: 'message',
      role: 'assistant',
      'content.0.text': 'Hello there!',
      'content.1': undefined,
      stop_reason: 'end_turn',
      'usage.input_tokens': 10,
      'usage.output_tokens': 5,
    },
  },
  {
    source: `${OLLAMA}ToMessagesResponse_WithToolCalls`,
    message: { content: '', tool_calls: calls },
    finish: 'stop',
    read: {
      'content.0.type': 'tool_use',
      'content.0.id': 'call_123',
      'content.0.name': 'get_weather',
      'content.0.input': { location: 'Paris' },
      'content.1': undefined,
      stop_reason: 'tool_use',
    },
  },
  {
    source: `${OLLAMA}ToMessagesResponse_WithThinking`,
    message: { content: 'The answer is 42.', reasoning: 'Let me think' },
    finish: 'stop',
    read: { 'content.0.type': 'thinking', 'content.0.thinking': 'Let me think', 'content.1.text': 'The answer is 42.' },
  },
  {
    source: `${OLLAMA}MapStopReason: stop`,
    message: { content: 'x' },
    finish: 'stop',
    read: { stop_reason: 'end_turn' },
  },
  {
    source: `${OLLAMA}MapStopReason: length`,
    message: { content: 'x' },
    finish: 'length',
    read: { stop_reason: 'max_tokens' },
  },
  {
    source: `${OLLAMA}MapStopReason: stop beside calls`,
    message: { content: 'x', tool_calls: calls },
    finish: 'stop',
    read: { stop_reason: 'tool_use' },
  },
  {
    source: `${VLLM}cache_hit`,
    message: { content: 'x' },
    finish: 'stop',
    usage: counts(80, 10),
    read: used(10, 80, 10),
  },
  {
    source: `${VLLM}zero_cached_tokens`,
    message: { content: 'x' },
    finish: 'stop',
    usage: counts(0, 0),
    read: used(100, 0, 0),
  },
  {
    source: `${VLLM}all_tokens_cached`,
    message: { content: 'x' },
    finish: 'stop',
    usage: counts(100, 0),
    read: used(0, 100, 0),
  },
  {
    source: `${VLLM}no_prompt_tokens_details`,
    message: { content: 'x' },
    finish: 'stop',
    usage: counts(),
    read: used(100, 0, 0),
  },
  {
    source: `${LLAMA}messages_basic: no timings`,
    message: { content: 'x' },
    finish: 'stop',
    read: { timings: undefined, 'usage.cache_read_input_tokens': 0 },
  },
  {
    source: `${LLAMA}thinking_with_reasoning_model`,
    message: { content: '4', reasoning_content: '2+2 is 4' },
    finish: 'stop',
    read: { 'content.0.thinking': '2+2 is 4', 'content.0.signature': /./, 'content.1.text': '4' },
  },
  {
    source: `${TGI}test_flash_llama_grammar_tools_nostream.json`,
    message: {
      content: null,
      tool_calls: [
        {
          id: '0',
          type: 'function',
          function: { name: 'get_current_weather', description: null, arguments: '{"location":"Brooklyn, NY"}' },
        },
      ],
    },
    finish: 'stop',
    read: {
      'content.0.type': 'tool_use',
      'content.0.id': '0',
      'content.0.input': { location: 'Brooklyn, NY' },
      stop_reason: 'tool_use',
    },
  },
  {
    source: 'huggingface/text-generation-inference 1.4: one call instead of a list, with a number as its id',
    message: {
      content: null,
      tool_calls: { id: 0, type: 'function', function: { name: 'f', description: null, arguments: { a: 1 } } },
    },
    finish: 'eos_token',
    read: {
      'content.0.type': 'tool_use',
      'content.0.name': 'f',
      'content.0.id': /^call_/,
      'content.0.input': { a: 1 },
      stop_reason: 'tool_use',
    },
  },
  {
    source: 'nearai/ironclaw#5951: a stray token behind the arguments',
    message: {
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"path":"a.md"}<|im_end|>' } }],
    },
    finish: 'tool_calls',
    read: { 'content.0.input': { path: 'a.md' } },
  },
  {
    source: 'Vivswan/litellm-vscode-chat#281: a call without arguments',
    message: { content: '', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '' } }] },
    finish: 'tool_calls',
    read: { 'content.0.input': {}, stop_reason: 'tool_use' },
  },
  {
    source: 'vercel/ai packages/openai-compatible/src/chat/__fixtures__/issue-13703-mistral-thinking.json',
    message: {
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Okay.' }], closed: true },
        { type: 'text', text: '391' },
      ],
    },
    finish: 'stop',
    read: { 'content.0.thinking': 'Okay.', 'content.1.text': '391', 'content.2': undefined },
  },
  {
    source: 'sgl-project/sglang test_anthropic_4_7_compat.py thinking_block_emitted_before_text',
    message: { content: '4', reasoning_content: '2+2=4', tool_calls: null },
    finish: 'stop',
    usage: { prompt_tokens: 5, completion_tokens: 7 },
    read: { 'content.0.type': 'thinking', 'content.1.text': '4', 'usage.input_tokens': 5, 'usage.output_tokens': 7 },
  },
];
