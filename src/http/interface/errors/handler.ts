import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorRequestHandler } from 'express';
import type { Logger } from 'pino';
import { closeAfterUnreadBody } from '../bodies/json-body.ts';
import { ApiError } from './api-error.ts';
import { type ErrorFamily, familyOf, relativePath } from './families.ts';
import { toApiError } from './from-error.ts';

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

/** The JSON body of an error, in the shape that clients of the endpoint expect. */
export function renderError(
  error: Pick<ApiError, 'message' | 'code' | 'extra' | 'status'>,
  family: ErrorFamily,
  requestId: string,
): Record<string, unknown> {
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

/** Where a failure is answered. */
interface Failed {
  request: IncomingMessage;
  response: ServerResponse;
  /** Below the API base; empty for other paths. */
  path: string;
}

/** Answers every failure as JSON. A failure of Berth is logged with the incident id that the client gets. */
export function failureAnswer(log: Logger): (thrown: unknown, at: Failed) => void {
  return (thrown, { request, response, path }) => {
    const requestId = String(response.getHeader('x-request-id') ?? '');
    let error = toApiError(thrown);
    // An overload is no failure of Berth: a flood must not fill the log with incidents.
    if (error.status >= 500 && error.code !== 'overloaded') {
      const incident = randomUUID();
      log.error({ err: error.cause ?? error, incident, requestId, code: error.code }, 'Request failed');
      const extra = { ...error.extra, incident_id: incident };
      error = new ApiError(error.code, `${error.message} Incident ${incident}.`, { headers: error.headers, extra });
    }
    closeAfterUnreadBody(request, response);
    const body = JSON.stringify(renderError(error, familyOf(path), requestId));
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    response.setHeader('cache-control', 'no-store');
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', Buffer.byteLength(body));
    response.statusCode = error.status;
    response.end(body);
  };
}

/** The same as the last handler of an Express app. */
export function errorHandler(log: Logger): ErrorRequestHandler {
  const answer = failureAnswer(log);
  return (thrown: unknown, request, response, next) => {
    if (response.headersSent) return next(thrown);
    answer(thrown, { request, response, path: relativePath(request.originalUrl.split('?', 1)[0] ?? '') ?? '' });
  };
}
