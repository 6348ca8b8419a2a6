import type { IncomingMessage } from 'node:http';
import { getPrincipal } from '../../access/principal.ts';
import { setRequestSpan } from '../../runtime/tracing/request-span.ts';
import { readTraceContext } from '../../runtime/tracing/trace-context.ts';
import type { Span, Tracer } from '../../runtime/tracing/tracer.ts';
import { pathOf, type Step } from '../interface/step.ts';
import { OPERATIONS } from './table.ts';

const BASE = '/api/v1';
const TEMPLATES = [...new Set(OPERATIONS.map(({ path }) => path))].map((path) => ({ path, parts: path.split('/') }));
const LITERAL = new Map(TEMPLATES.filter(({ path }) => !path.includes('{')).map(({ path }) => [path, path]));
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']);

/** The template of a path relative to the API base; undefined for one that is no operation. No text of a client is in it. */
function templateOf(path: string): string | undefined {
  const literal = LITERAL.get(path);
  if (literal !== undefined) return literal;
  const parts = path.split('/', 8);
  return TEMPLATES.find(
    (one) =>
      one.parts.length === parts.length &&
      one.parts.every((part, index) => part === parts[index] || (part.startsWith('{') && parts[index] !== '')),
  )?.path;
}

/**
 * A span for each request of a caller with a valid key, below that of the client where it names one. It stands behind
 * authentication: strangers begin no traces.
 */
export function traceRequests(tracer: Tracer): Step {
  return (request, response, next) => {
    const span = startSpan(tracer, request);
    const release = setRequestSpan(request, span);
    response.once('close', () => {
      if (response.headersSent) span.set({ 'http.response.status_code': response.statusCode });
      if (response.statusCode >= 500) span.fail(String(response.statusCode));
      else if (!response.writableFinished && request.headers.upgrade === undefined)
        span.set({ 'berth.client_left': true });
      release();
    });
    next();
  };
}

function startSpan(tracer: Tracer, request: IncomingMessage): Span {
  const { traceparent, tracestate } = request.headers;
  const template = templateOf(pathOf(request));
  const route = template === undefined ? undefined : `${BASE}${template}`;
  const method = METHODS.has(request.method ?? '') ? (request.method ?? '') : '_OTHER';
  return tracer.start(
    {
      name: route === undefined ? (method === '_OTHER' ? 'HTTP' : method) : `${method} ${route}`,
      kind: 'server',
      attributes: {
        'http.request.method': method,
        ...(route !== undefined && { 'http.route': route }),
        'berth.tenant': getPrincipal(request).namespace,
      },
    },
    readTraceContext({ traceparent, tracestate }),
  );
}
