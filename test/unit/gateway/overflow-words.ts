/** What engines say when a request does not fit into the context of the model, and where they were seen to say it. */
export interface OverflowWords {
  engine: string;
  source: string;
  status: number;
  body: Record<string, unknown>;
  /** What a client of Anthropic reads. */
  messages: string;
}

const error = (message: string, fields: object = {}) => ({ error: { message, type: 'BadRequestError', ...fields } });
const exceed = (prompt: number, output: number, limit: number): string =>
  `input length and \`max_tokens\` exceed context limit: ${prompt} + ${output} > ${limit}, decrease input length or \`max_tokens\` and try again`;
const tooLong = (prompt: number, limit: number): string => `prompt is too long: ${prompt} tokens > ${limit} maximum`;

export const OVERFLOWS: readonly OverflowWords[] = [
  {
    engine: 'vLLM up to 0.9',
    source: 'vllm-project/vllm#20409',
    status: 400,
    body: {
      object: 'error',
      message:
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    messages: tooLong(112946, 16384),
  },
  {
    engine: 'vLLM up to 0.9, prompt that fits',
    source: 'vllm-project/vllm#20409',
    status: 400,
    body: error(
      "This model's maximum context length is 40960 tokens. However, you requested 52710 tokens (20710 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.",
      { code: 400 },
    ),
    messages: exceed(20710, 32000, 40960),
  },
  {
    engine: 'vLLM 0.10',
    source: 'vllm/entrypoints/openai/serving_engine.py, _validate_input',
    status: 400,
    body: error(
      "'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 40960 tokens and your request has 12345 input tokens (64000 > 40960 - 12345).",
      { code: 400 },
    ),
    messages: exceed(12345, 64000, 40960),
  },
  {
    engine: 'vLLM 0.10, prompt alone',
    source: 'vllm/entrypoints/openai/serving_engine.py, _validate_input',
    status: 400,
    body: error(
      "This model's maximum context length is 40960 tokens. However, your request has 41048 input tokens. Please reduce the length of the input messages.",
      { code: 400 },
    ),
    messages: tooLong(41048, 40960),
  },
  {
    engine: 'vLLM, engine layer',
    source: 'vllm/v1/engine/input_processor.py, _validate_prompt_len',
    status: 400,
    body: error(
      'The decoder prompt (length 41048) is longer than the maximum model length of 40960. Make sure that `max_model_len` is no smaller than the number of text tokens.',
      { code: 400 },
    ),
    messages: tooLong(41048, 40960),
  },
  {
    engine: 'vLLM up to 0.8, whose default limit becomes negative',
    source: 'vllm-project/vllm#4667',
    status: 400,
    body: { object: 'error', message: 'max_tokens must be at least 1, got -186.', type: 'BadRequestError', code: 400 },
    messages: 'prompt is too long: max_tokens must be at least 1, got -186.',
  },
  {
    // The tokenizer stops one token beyond what fits, so the length of the prompt is not known.
    engine: 'vLLM 0.15',
    source: 'Claude Code on vLLM, as quoted in public transcripts',
    status: 400,
    body: error(
      "You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=99073)",
      { param: 'input_tokens', code: 400 },
    ),
    messages: tooLong(99073, 99072),
  },
  {
    engine: 'vLLM 0.27',
    source: 'AIDotNet/OpenCowork#82; vllm/renderers/params.py, _token_len_check',
    status: 400,
    body: error(
      "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=134145)",
      { param: 'input_tokens', code: 400 },
    ),
    messages: tooLong(134145, 134144),
  },
  {
    engine: 'SGLang',
    source: 'QwenLM/Qwen3#1321',
    status: 400,
    body: {
      object: 'error',
      message: "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    messages: tooLong(61709, 40960),
  },
  {
    engine: 'SGLang, prompt and output',
    source: 'anomalyco/opencode#25230',
    status: 400,
    body: error(
      "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    ),
    messages: exceed(170941, 32000, 202752),
  },
  {
    engine: 'SGLang, scheduler',
    source: 'sgl-project/sglang#4048',
    status: 400,
    body: error('Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).', { code: 400 }),
    messages: tooLong(160062, 59862),
  },
  {
    engine: 'llama.cpp in September 2025',
    source: 'ggml-org/llama.cpp#15780',
    status: 500,
    body: {
      error: {
        code: 500,
        message:
          'the request exceeds the available context size. try increasing the context size or enable context shift',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 1407,
        n_ctx: 256,
      },
    },
    messages: tooLong(1407, 256),
  },
  {
    engine: 'llama.cpp',
    source: 'ggml-org/llama.cpp#19774',
    status: 400,
    body: {
      error: {
        code: 400,
        message: 'request (66000 tokens) exceeds the available context size (65536 tokens), try increasing it',
        type: 'exceed_context_size_error',
      },
    },
    messages: tooLong(66000, 65536),
  },
  {
    engine: 'llama.cpp, without context shift',
    source: 'tools/server/server-context.cpp',
    status: 400,
    body: {
      error: {
        code: 400,
        message: 'input (70000 tokens) is larger than the max context size (65536 tokens). skipping',
        type: 'exceed_context_size_error',
      },
    },
    messages: tooLong(70000, 65536),
  },
  {
    engine: 'llama.cpp while it generates',
    source: 'ggml-org/llama.cpp#19774',
    status: 500,
    body: { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } },
    messages: 'prompt is too long: Context size has been exceeded.',
  },
  {
    engine: 'TGI',
    source: 'huggingface/text-generation-inference#628',
    status: 422,
    body: {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1244 `inputs` tokens and 1000 `max_new_tokens`',
      error_type: 'validation',
    },
    messages: exceed(1244, 1000, 2048),
  },
  {
    engine: 'TGI, prompt alone',
    source: 'huggingface/text-generation-inference#695',
    status: 422,
    body: {
      error: 'Input validation error: `inputs` must have less than 1024 tokens. Given: 1168',
      error_type: 'validation',
    },
    messages: tooLong(1168, 1024),
  },
  {
    engine: 'Ollama',
    source: 'ollama.com, as quoted in public transcripts',
    status: 400,
    body: { error: 'prompt too long; exceeded max context length by 15935 tokens (ref: 0a1b)' },
    messages: 'prompt is too long: prompt too long; exceeded max context length by 15935 tokens (ref: 0a1b)',
  },
  {
    engine: 'Ollama, truncate off',
    source: 'ollama/ollama server/routes.go',
    status: 400,
    body: { error: 'the input length exceeds the context length' },
    messages: 'prompt is too long: the input length exceeds the context length',
  },
  {
    engine: 'a server of the messages dialect',
    source: 'docs.claude.com, errors',
    status: 400,
    body: { type: 'error', error: { type: 'invalid_request_error', message: tooLong(213462, 200000) } },
    messages: tooLong(213462, 200000),
  },
  {
    engine: 'a server of the messages dialect, prompt and output',
    source: 'continuedev/continue#6080',
    status: 400,
    body: { type: 'error', error: { type: 'invalid_request_error', message: exceed(199759, 8192, 200000) } },
    messages: exceed(199759, 8192, 200000),
  },
  {
    engine: 'a server of OpenAI’s dialects',
    source: 'openai-python, error codes',
    status: 400,
    body: {
      error: {
        message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
        type: 'invalid_request_error',
        param: 'input',
        code: 'context_length_exceeded',
      },
    },
    messages:
      'prompt is too long: Your input exceeds the context window of this model. Please adjust your input and try again.',
  },
];

/** Errors that speak of tokens, lengths and limits, and are no overflow. */
export const NO_OVERFLOWS: readonly { source: string; status: number; body: Record<string, unknown> }[] = [
  { source: 'vLLM', status: 400, body: error('max_tokens must be at least 1, got 0.', { code: 400 }) },
  {
    source: 'TGI',
    status: 422,
    body: { error: '`stop` supports up to 4 stop sequences. Given: 5', error_type: 'validation' },
  },
  { source: 'OpenAI', status: 429, body: error('Rate limit reached: Limit 30000, Requested 31000 tokens per min.') },
  { source: 'vLLM', status: 400, body: error('The context of the tool call is not valid JSON.', { code: 400 }) },
];
