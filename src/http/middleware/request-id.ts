import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

/** What a client may call its request: nothing that could break a header or a log line. */
const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives each request an id, the client's own when it is harmless, and returns it as X-Request-Id. */
export const requestId: RequestHandler = (request, response, next) => {
  const given = request.headers['x-request-id'];
  const id = typeof given === 'string' && ACCEPTABLE.test(given) ? given : randomUUID();
  response.setHeader('x-request-id', id);
  next();
};
