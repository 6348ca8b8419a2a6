import type { RequestHandler } from 'express';
import { ApiError } from '../errors/api-error.ts';

/** Answers 405 for every method; stands after the methods that there are. */
export function methodNotAllowed(allow: string): RequestHandler {
  return (request) => {
    const message = `${request.method} is not allowed here, only ${allow}.`;
    throw new ApiError('method_not_allowed', message, { headers: { allow: `${allow}, OPTIONS` } });
  };
}
