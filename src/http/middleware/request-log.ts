import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';
import { findPrincipal } from '../auth/principal.ts';

const QUIET = new Set(['/livez', '/readyz']);

/**
 * One line per request, with what is known to be harmless and nothing else: no header, no query, no body. pino escapes
 * what is in the path.
 */
export function requestLog(log: Logger): RequestHandler {
  return pinoHttp({
    logger: log,
    quietReqLogger: true,
    genReqId: (request) => request.id,
    autoLogging: { ignore: (request) => QUIET.has(request.url ?? '') },
    customLogLevel: (_request, response, error) =>
      error !== undefined || response.statusCode >= 500 ? 'error' : 'info',
    customSuccessMessage: () => 'Answered',
    customErrorMessage: () => 'Failed to answer',
    customProps: (request) => {
      const principal = findPrincipal(request);
      return principal === undefined ? {} : { tenant: principal.namespace, key: principal.name };
    },
    serializers: {
      req: ({ method, url }: { method: string; url: string }) => ({
        method,
        path: url.split('?', 1)[0]?.slice(0, 512),
      }),
      res: ({ statusCode }: { statusCode: number }) => ({ status: statusCode }),
    },
  }) as RequestHandler;
}
