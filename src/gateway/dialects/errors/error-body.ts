import type { Json } from '../../../lib/json.ts';
import type { ClientError, Dialect } from '../types.ts';
import { CONTEXT_LENGTH_EXCEEDED, isOverflow, overflowMessage } from './context-overflow.ts';

/** The documented error types of the messages dialect. Client libraries know no others. */
const MESSAGES_TYPES = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [408, 'timeout_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
]);

/** OpenAI's code and type for an account without credit, which its users know not to try again. */
export const INSUFFICIENT_QUOTA = 'insufficient_quota';

function messagesType(status: number): string {
  return MESSAGES_TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

const OPENAI_TYPES = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [429, 'rate_limit_error'],
]);

const OPENAI_CODES = new Map([
  [401, 'invalid_api_key'],
  [404, 'model_not_found'],
  [429, 'rate_limit_exceeded'],
]);

function openAiError(error: ClientError): Json {
  const fallback = error.status >= 500 ? 'server_error' : 'invalid_request_error';
  return {
    message: error.message,
    // The status decides: engines send class names of their own (`NotFoundError`), which client libraries do not know.
    type: error.code === INSUFFICIENT_QUOTA ? INSUFFICIENT_QUOTA : (OPENAI_TYPES.get(error.status) ?? fallback),
    param: error.param ?? null,
    code: error.code ?? OPENAI_CODES.get(error.status) ?? null,
  };
}

function messagesError(error: ClientError): Json {
  const message = isOverflow(error) ? overflowMessage(error) : error.message;
  return { type: messagesType(error.status), message };
}

/** A whole error answer in the dialect's shape. A missing or wrong key gets one answer in every dialect instead. */
export function errorBody(
  dialect: Dialect,
  error: ClientError,
  requestId: string,
): { body: unknown; headers: Record<string, string> } {
  const headers = { 'content-type': 'application/json', 'x-request-id': requestId };
  if (dialect !== 'messages') return { body: { error: openAiError(error) }, headers };
  const body = { type: 'error', error: messagesError(error), request_id: requestId };
  return { body, headers: { ...headers, 'request-id': requestId } };
}

/** An error inside a stream as SSE text: an error object in chat, an `error` event in responses and messages. */
export function streamError(dialect: Dialect, error: ClientError, sequenceNumber = 0): string {
  if (dialect === 'chat') return `data: ${JSON.stringify({ error: openAiError(error) })}\n\ndata: [DONE]\n\n`;
  if (dialect === 'messages') {
    return `event: error\ndata: ${JSON.stringify({ type: 'error', error: messagesError(error) })}\n\n`;
  }
  const { code, param } = openAiError(error);
  const event = {
    type: 'error',
    sequence_number: sequenceNumber,
    code: code ?? 'server_error',
    message: error.message,
    param,
  };
  return `event: error\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The code for `response.error`, which has a closed list of codes. Codex compacts when it reads the first. */
export function responseErrorCode(error: ClientError): string {
  if (isOverflow(error)) return CONTEXT_LENGTH_EXCEEDED;
  if (error.status === 429) return 'rate_limit_exceeded';
  return error.status < 500 ? 'invalid_prompt' : 'server_error';
}

/** The error of a response that its server says has failed. */
export function failedWith(error: ClientError): Json {
  return { code: error.code ?? responseErrorCode(error), message: error.message };
}
