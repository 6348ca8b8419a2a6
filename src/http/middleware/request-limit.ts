import type { RequestHandler } from 'express';
import type { MinuteCounter } from '../../runtime/counter.ts';
import { getPrincipal } from '../../access/principal.ts';
import { ApiError } from '../errors/api-error.ts';

/** Calls per minute of a key without a limit of its own: far above what people and polling programs need. */
export const DEFAULT_REQUESTS_PER_MINUTE = 60_000;
const WINDOW_SECONDS = 60;

/** Counts a key's compute calls. Answers say how many are left (draft-ietf-httpapi-ratelimit-headers). */
export function limitRequests(counter: MinuteCounter): RequestHandler {
  return async (request, response, next) => {
    const { keyId, limits } = getPrincipal(request);
    const quota = limits?.requestsPerMinute ?? DEFAULT_REQUESTS_PER_MINUTE;
    const { total, resetMs } = await counter.add(keyId, 1);
    const seconds = Math.max(1, Math.ceil(resetMs / 1000));
    response.setHeader('ratelimit-policy', `"key";q=${quota};w=${WINDOW_SECONDS}`);
    response.setHeader('ratelimit', `"key";r=${Math.max(0, quota - total)};t=${seconds}`);
    if (total <= quota) return next();
    throw new ApiError('rate_limit_exceeded', `This key may make ${quota} calls per minute. Wait ${seconds} s.`, {
      retryAfterSeconds: seconds,
    });
  };
}
