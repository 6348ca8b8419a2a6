import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { findPrincipal } from '../../access/principal.ts';

/** What a client may call its request: nothing that could break a header or a log line. */
const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives each request an id, the client's own when it is harmless, and returns it as X-Request-Id. */
export const requestId: RequestHandler = (request, response, next) => {
  const given = request.headers['x-request-id'];
  const id = typeof given === 'string' && ACCEPTABLE.test(given) ? given : randomUUID();
  response.setHeader('x-request-id', id);
  next();
};

const QUIET = new Set(['/livez', '/readyz']);
const MAX_PATH = 512;
/** A key that somebody put into a path by mistake. */
const TOKEN = /berth_[\w-]+/g;

/**
 * One line per request, with what is known to be harmless and nothing else: no header, no query, no body. pino escapes
 * what is in the path. A child logger per request, as pino-http makes, would cost as much as the rest of a cached read.
 */
export function requestLog(log: Logger): RequestHandler {
  return (request, response, next) => {
    const start = performance.now();
    response.once('close', () => {
      const path = request.originalUrl.split('?', 1)[0] ?? '';
      if (QUIET.has(path)) return;
      const principal = findPrincipal(request);
      const fields = {
        requestId: response.getHeader('x-request-id'),
        method: request.method,
        path: path.slice(0, MAX_PATH).replace(TOKEN, 'berth_…'),
        status: response.statusCode,
        complete: response.writableFinished,
        ms: Math.round(performance.now() - start),
        ...(principal && { tenant: principal.namespace, key: principal.name }),
      };
      if (response.statusCode >= 500) log.error(fields, 'Failed to answer');
      else log.info(fields, 'Answered');
    });
    next();
  };
}
