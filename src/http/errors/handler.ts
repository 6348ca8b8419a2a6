import { randomUUID } from 'node:crypto';
import type { ErrorRequestHandler } from 'express';
import type { Logger } from 'pino';
import { closeAfterUnreadBody } from '../middleware/unread-body.ts';
import { ApiError } from './api-error.ts';
import { familyOf, relativePath } from './families.ts';
import { toApiError } from './from-error.ts';
import { renderError } from './render.ts';

/** Answers every failure as JSON. Faults of ours are logged with the incident id that the client sees, and no more. */
export function errorHandler(log: Logger): ErrorRequestHandler {
  return (thrown: unknown, request, response, next) => {
    if (response.headersSent) return next(thrown);
    let error = toApiError(thrown);
    if (error.status >= 500) {
      const incident = randomUUID();
      log.error(
        { err: error.cause ?? error, incident, requestId: response.getHeader('x-request-id'), code: error.code },
        'A request failed',
      );
      const extra = { ...error.extra, incident_id: incident };
      error = new ApiError(error.code, `${error.message} Incident ${incident}.`, { headers: error.headers, extra });
    }
    closeAfterUnreadBody(request, response);
    const family = familyOf(relativePath(request.originalUrl.split('?', 1)[0] ?? '') ?? '');
    response.status(error.status).set(error.headers);
    response.set('cache-control', 'no-store');
    response.json(renderError(error, family, String(response.getHeader('x-request-id') ?? '')));
  };
}
