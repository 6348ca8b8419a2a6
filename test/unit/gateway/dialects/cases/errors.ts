/** What engines, and the gateways and clouds in front of some, say in errors, and what a client must get of it. */
export interface ErrorCase {
  /** Where the words were seen: repository and file, and whose they are. */
  source: string;
  status: number;
  message: string;
  /** The status for the client. */
  expected: number;
  /** The type of the error in the messages dialect. */
  type: string;
  /** The prompt does not fit into the context: what a client of Anthropic reads. */
  overflow?: string | RegExp;
}

const PI = 'badlogic/pi-mono packages/ai/src/utils/overflow.ts: ';
const LITELLM = 'BerriAI/litellm tests/test_litellm/litellm_core_utils/test_exception_mapping_utils.py: ';
const OLLAMA = 'ollama/ollama anthropic/anthropic_test.go TestNewError: ';
const PRIMER = 'primerhq/primer tests/common/test_context_overflow.py: ';
const SGLANG_LENGTHS = 'sgl-project/sglang test/registered/openai_server/validation/test_request_length_validation.py ';
const CODEX = 'openai/codex codex-rs/codex-api/src/sse/responses.rs: ';

function tooLong(source: string, message: string, overflow: string | RegExp, status = 400): ErrorCase {
  return { source, status, message, expected: 400, type: 'invalid_request_error', overflow };
}

/** @param status of the engine, and of the answer where it is another */
function plain(source: string, status: number | [number, number], message: string, type: string): ErrorCase {
  const [own, expected] = typeof status === 'number' ? [status, status] : status;
  return { source, status: own, message, expected, type };
}

export const ERRORS: readonly ErrorCase[] = [
  tooLong(
    `${PI}Anthropic`,
    'prompt is too long: 213462 tokens > 200000 maximum',
    'prompt is too long: 213462 tokens > 200000 maximum',
  ),
  tooLong(`${PI}OpenAI`, 'Your input exceeds the context window of this model', /^prompt is too long: Your input/),
  tooLong(
    `${PI}Google`,
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)',
    'prompt is too long: 1196265 tokens > 1048575 maximum',
  ),
  tooLong(
    `${PI}xAI`,
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    'prompt is too long: 537812 tokens > 131072 maximum',
  ),
  tooLong(`${PI}Groq`, 'Please reduce the length of the messages or completion', /^prompt is too long: /),
  tooLong(
    `${PI}OpenRouter`,
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40960 tokens",
    'prompt is too long: 40960 tokens > 32768 maximum',
  ),
  tooLong(
    `${PI}llama.cpp`,
    'the request exceeds the available context size, try increasing it',
    /^prompt is too long: /,
  ),
  tooLong(
    `${PI}llama.cpp, as a failure`,
    'the request exceeds the available context size, try increasing it',
    /^prompt is too long: /,
    500,
  ),
  tooLong(
    `${PI}LM Studio`,
    'tokens to keep from the initial prompt is greater than the context length',
    /^prompt is too long: /,
  ),
  tooLong(
    `${PI}GitHub Copilot`,
    'prompt token count of 70000 exceeds the limit of 64000',
    'prompt is too long: 70000 tokens > 64000 maximum',
  ),
  tooLong(`${PI}MiniMax`, 'invalid params, context window exceeds limit', /^prompt is too long: /),
  tooLong(
    `${PI}Kimi`,
    'Your request exceeded model token limit: 262144 (requested: 270000)',
    'prompt is too long: 270000 tokens > 262144 maximum',
  ),
  tooLong(
    `${PI}Mistral`,
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    'prompt is too long: 40000 tokens > 32768 maximum',
  ),
  tooLong(`${PI}Bedrock`, 'Input is too long for requested model.', /^prompt is too long: /),
  tooLong(
    `${LITELLM}context limit`,
    "An error occurred: The input exceeds the model's maximum context limit of 8192 tokens.",
    /8192/,
  ),
  tooLong(
    `${LITELLM}context length in a sentence`,
    "Some text before, this model's maximum context length is 4096 tokens. Some text after.",
    /4096/,
  ),
  tooLong(
    `${LITELLM}longer than the model's context length`,
    "Your prompt is longer than the model's context length of 2048.",
    /2048/,
  ),
  tooLong(
    `${LITELLM}Bedrock payload`,
    'AWS Bedrock Error: The request payload size has exceed context limit.',
    /^prompt is too long: /,
  ),
  tooLong(
    `${LITELLM}configured limit`,
    'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please reduce the length of the messages.',
    'prompt is too long: 509178 tokens > 272000 maximum',
  ),
  tooLong(`${LITELLM}capital letters`, "ERROR: THIS MODEL'S MAXIMUM CONTEXT LENGTH IS 1024.", /1024/),
  tooLong(
    `${CODEX}context_window_error_is_fatal`,
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    /^prompt is too long: /,
  ),
  tooLong(
    `${CODEX}context_window_error_with_newline_is_fatal`,
    'Your input exceeds the context window of this model. Please adjust your input and try\nagain.',
    /^prompt is too long: /,
  ),

  // More servers, as their users and the makers of other gateways quote them.
  tooLong(
    `${PRIMER}vllm-prompt-too-long-to-fit (vllm-project/vllm#12165)`,
    'The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.',
    'prompt is too long: 25938 tokens > 4096 maximum',
  ),
  tooLong(
    `${PRIMER}vllm-renderer-characters`,
    "This model's maximum context length is 32768 tokens. However, you requested 4096 output tokens and your prompt contains 200000 characters (more than 130688 characters, which is the upper bound for 28672 input tokens). Please reduce the length of the input prompt or the number of requested output tokens.",
    /^prompt is too long: This model's maximum context length is 32768 tokens/,
  ),
  tooLong(
    `${PRIMER}vllm-comma-numbers-cap-fits`,
    "'max_tokens' is too large: 2,000. This model's maximum context length is 1,000,000 tokens and your request has 999,500 input tokens (2,000 > 1,000,000 - 999,500).",
    /^input length and `max_tokens` exceed context limit: 999500 \+ 2000 > 1000000,/,
  ),
  tooLong(
    `${PRIMER}cohere`,
    'too many tokens: total number of tokens in the prompt cannot exceed 4081',
    /^prompt is too long: too many tokens/,
  ),
  tooLong(
    `${PRIMER}code-in-the-message`,
    'context_length_exceeded: the request is too big for this model',
    /^prompt is too long: context_length_exceeded/,
  ),
  tooLong(
    `${PRIMER}openai`,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130211 tokens. Please reduce the length of the messages.",
    'prompt is too long: 130211 tokens > 128000 maximum',
  ),
  tooLong(
    `lmstudio-ai/lmstudio-bug-tracker#546`,
    'Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input',
    'prompt is too long: 111490 tokens > 32768 maximum',
  ),
  tooLong(
    `Gitlawb/openclaude#353: LM Studio`,
    'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.',
    'prompt is too long: 13055 tokens > 4096 maximum',
  ),
  tooLong(
    `jundot/omlx#26`,
    'Prompt too long: 32799 tokens exceeds max context window of 32768 tokens',
    'prompt is too long: 32799 tokens > 32768 maximum',
  ),
  tooLong(
    `ddalcu/mlx-serve#66`,
    'Prompt exceeds maximum context length',
    'prompt is too long: Prompt exceeds maximum context length',
  ),
  tooLong(
    `triton-inference-server/tensorrtllm_backend#141`,
    'Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)',
    'prompt is too long: 5056 tokens > 2048 maximum',
  ),
  tooLong(
    `NVIDIA/TensorRT-LLM#9277`,
    'The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)',
    'prompt is too long: 9351 tokens > 8192 maximum',
    500,
  ),
  tooLong(
    `musistudio/claude-code-router#1292`,
    "This model's maximum context length is 102400 tokens. However, you requested 107837 tokens (99645 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    /^input length and `max_tokens` exceed context limit: 99645 \+ 8192 > 102400,/,
  ),
  tooLong(
    `Alishahryar1/free-claude-code#263: SGLang`,
    "The input (345516 tokens) is longer than the model's context length (262144 tokens). (request_id=req_123)",
    'prompt is too long: 345516 tokens > 262144 maximum',
  ),

  // Compacting mends none of these.
  plain(
    `${PRIMER}anthropic-output-cap`,
    400,
    'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514',
    'invalid_request_error',
  ),
  plain(
    `${PRIMER}openai-max-tokens-too-large`,
    400,
    'max_tokens is too large: 100000. This model supports at most 4096 completion tokens, whereas you provided 100000.',
    'invalid_request_error',
  ),
  plain(
    `${PRIMER}openai-unsupported-max-tokens`,
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    'invalid_request_error',
  ),
  plain(
    `${PRIMER}gemini-output-cap`,
    400,
    'Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 8193 (exclusive).',
    'invalid_request_error',
  ),
  plain(
    `${PRIMER}bare-too-long`,
    400,
    "Invalid 'metadata.key': string too long. Expected at most 64 characters.",
    'invalid_request_error',
  ),
  plain(`${PRIMER}unrelated-400`, 400, 'messages: text content blocks must be non-empty', 'invalid_request_error'),
  plain(
    `${SGLANG_LENGTHS}test_max_tokens_validation`,
    400,
    'max_completion_tokens is too large: 1200.This model supports at most 1000 completion tokens.',
    'invalid_request_error',
  ),
  plain(
    `${SGLANG_LENGTHS}test_token_ids_logprob_out_of_vocabulary`,
    400,
    'token_ids_logprob has out-of-vocabulary ids',
    'invalid_request_error',
  ),
  plain(`ggml-org/llama.cpp#10635: hosted tools`, 400, "'type' of tool must be 'function'", 'invalid_request_error'),
  plain(
    `anthropics/claude-code#77928: a template of vLLM`,
    400,
    'jinja2.exceptions.TemplateError: Unexpected item type in content.',
    'invalid_request_error',
  ),
  plain(
    `anthropics/claude-code#21595`,
    400,
    '`clear_thinking_20251015` strategy requires `thinking` to be enabled',
    'invalid_request_error',
  ),
  plain(
    `BerriAI/litellm#39741`,
    400,
    "invalid request body: Invalid 'input': value did not match any expected variant",
    'invalid_request_error',
  ),

  plain(`${LITELLM}not of the context: generic`, 400, 'A generic API error occurred.', 'invalid_request_error'),
  plain(`${LITELLM}not of the context: key`, 400, 'Invalid API Key provided.', 'invalid_request_error'),
  plain(`${LITELLM}not of the context: rate`, 429, 'Rate limit reached for requests.', 'rate_limit_error'),
  plain(
    `${LITELLM}not of the context: acceptable`,
    400,
    'The context is large, but acceptable.',
    'invalid_request_error',
  ),
  plain(
    `${LITELLM}a number in the payload`,
    400,
    "Invalid user message={'role': 'user', 'content': [{'text': 'payload429snippet'}]}",
    'invalid_request_error',
  ),
  plain(`${LITELLM}Vertex quota`, 429, '429 Quota exceeded for model', 'rate_limit_error'),
  plain(`${LITELLM}Vertex capacity`, 429, 'Resource exhausted. Please try again later.', 'rate_limit_error'),
  plain(
    `${LITELLM}Azure policy`,
    400,
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy",
    'invalid_request_error',
  ),
  plain(`${LITELLM}OCI 401`, [401, 502], 'Authentication failed', 'api_error'),
  plain(`${LITELLM}OCI 404`, 404, 'Model not found', 'not_found_error'),
  plain(`${LITELLM}OCI 409`, 409, 'Conflict error', 'invalid_request_error'),
  plain(`${LITELLM}OCI 500`, 500, 'Internal server error', 'api_error'),
  plain(`${LITELLM}OCI 502`, 502, 'Bad gateway', 'api_error'),
  plain(`${LITELLM}OCI 503`, 503, 'Service unavailable', 'overloaded_error'),
  plain(`${LITELLM}OCI 504`, 504, 'Gateway timeout', 'timeout_error'),
  plain(`${OLLAMA}400`, 400, 'test message', 'invalid_request_error'),
  plain(`${OLLAMA}403`, [403, 502], 'test message', 'api_error'),
  plain(`${OLLAMA}404`, 404, 'test message', 'not_found_error'),
  plain(`${OLLAMA}429`, 429, 'test message', 'rate_limit_error'),
  plain(`${OLLAMA}500`, 500, 'test message', 'api_error'),
  plain(`${OLLAMA}503`, 503, 'test message', 'overloaded_error'),
  plain(`${OLLAMA}529`, 529, 'test message', 'overloaded_error'),
  plain(
    `${CODEX}tokens per minute are no context`,
    429,
    'Rate limit reached for gpt-5.1 in organization org-AAA on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s.',
    'rate_limit_error',
  ),
  plain(`${CODEX}Azure`, 429, 'Rate limit exceeded. Try again in 35 seconds.', 'rate_limit_error'),
  plain(
    `${CODEX}quota`,
    429,
    'You exceeded your current quota, please check your plan and billing details.',
    'rate_limit_error',
  ),
  plain(
    'ggml-org/llama.cpp tools/server/tests/unit/test_compat_anthropic.py vision_format_accepted',
    500,
    'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
    'api_error',
  ),
];
