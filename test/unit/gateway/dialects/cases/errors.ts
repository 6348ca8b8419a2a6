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
