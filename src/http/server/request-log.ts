import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { findPrincipal } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import { requestSpan } from '../../runtime/tracing/request-span.ts';
import type { Step } from '../interface/step.ts';

/** Request ids that a client may choose: nothing that could break a header or a log line. */
const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives each request an id, the client's own when it is acceptable, and returns it as X-Request-Id. */
export const requestId: Step = (request, response, next) => {
  const given = request.headers['x-request-id'];
  const id = typeof given === 'string' && ACCEPTABLE.test(given) ? given : randomUUID();
  response.setHeader('x-request-id', id);
  next();
};

const QUIET = new Set(['/livez', '/readyz']);
const MAX_PATH = 512;
/** A token that a client put into the path by mistake. */
const TOKEN = /berth_[\w-]+/g;

/**
 * Logs one line per request, without anything that could hold a secret: no header, no query, no body. pino escapes the
 * path. A child logger per request, as pino-http creates, would cost as much as the rest of a cached read.
 */
export function requestLog({ log, clock }: { log: Logger; clock: Clock }): Step {
  return (request, response, next) => {
    const start = clock.monotonic();
    // Now: a mount changes the URL.
    const { url = '' } = request;
    response.once('close', () => {
      const [path = ''] = url.split('?', 1);
      if (QUIET.has(path)) return;
      const principal = findPrincipal(request);
      const span = requestSpan(request);
      const fields = {
        requestId: response.getHeader('x-request-id'),
        method: request.method,
        path: path.slice(0, MAX_PATH).replace(TOKEN, 'berth_…'),
        status: response.statusCode,
        complete: response.writableFinished,
        ms: Math.round(clock.monotonic() - start),
        ...(principal && { tenant: principal.namespace, key: principal.name }),
        // The name that OpenTelemetry has for it in logs.
        ...(span && { trace_id: span.context.traceId }),
      };
      if (response.statusCode >= 500) log.error(fields, 'Answered with a failure');
      else log.info(fields, 'Answered');
    });
    next();
  };
}
