import { ApiError } from '../interface/errors/api-error.ts';
import type { Step } from '../interface/step.ts';

/** Refuses requests of HTTP/1.1 without Host (RFC 9112 section 3.2). Node itself would answer before authentication. */
export const requireHost: Step = (request, _response, next) => {
  if (request.headers.host !== undefined || request.httpVersion === '1.0') return next();
  throw new ApiError('bad_request', 'The request has no Host header. Send one.');
};
