import type { ApiError } from './api-error.ts';
import type { ErrorFamily } from './families.ts';

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  ...OPENAI_TYPES,
  413: 'request_too_large',
  503: 'overloaded_error',
};

function typeOf(types: Readonly<Record<number, string>>, status: number): string {
  return types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

/** The JSON body of an error, in the shape that clients of the path know. */
export function renderError(error: ApiError, family: ErrorFamily, requestId: string): Record<string, unknown> {
  const { message, code, extra, status } = error;
  if (family === 'compute') return { error: { message, code, ...extra } };
  if (family === 'openai')
    return { error: { message, type: typeOf(OPENAI_TYPES, status), param: null, code, ...extra } };
  return {
    type: 'error',
    error: { type: typeOf(ANTHROPIC_TYPES, status), message, ...extra },
    request_id: requestId,
  };
}
